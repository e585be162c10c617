// SPDX-License-Identifier: Apache-2.0
#include "store/mongo/mongo_changes.h"

#include "support/skip.h"
#include "support/test.h"

using namespace rlock::test;
using namespace rlock::mongo;

TEST_CASE("mongo changes: an answer is known when it is whole, and is that to the command that was sent")
{
  if (!libmongoc()) {
    skip("no libmongoc");
  }
  const std::string document = Document().add_small("ok", 1).bytes();
  std::string answer = message_of(9, Document().add_small("ok", 1));
  answer.replace(8, 4, std::string("\x05\0\0\0", 4));
  for (std::size_t length = 0; length < answer.size(); ++length) {
    CHECK(received_in(std::string_view(answer).substr(0, length), 5).kind == Received::Kind::part);
  }
  const Received received = received_in(answer + "more", 5);
  CHECK(received.kind == Received::Kind::answer);
  CHECK(received.document == document);
  CHECK(received.size == answer.size());
  CHECK(received_in(answer, 6).kind == Received::Kind::nonsense);
  // In the length, kind of message, flags, section, and length of the document.
  for (const std::size_t at : {std::size_t{3}, std::size_t{12}, std::size_t{16}, std::size_t{20}, std::size_t{24}}) {
    std::string other = answer;
    other[at] = static_cast<char>(other[at] + 1);
    CHECK(received_in(other, 5).kind == Received::Kind::nonsense);
  }
}

TEST_CASE("mongo changes: the stream is of the messages to this listener, and of documents that are made or deleted")
{
  if (!libmongoc()) {
    skip("no libmongoc");
  }
  const Document command = change_stream_command("locks", {{"a", {"x", "y"}}, {"b", {"z"}}});
  const std::string bytes = command.bytes();
  const Fields fields(bytes);
  CHECK(fields.all().front().key() == "aggregate");
  CHECK(fields.text("aggregate") == "locks");
  const Fields pipeline = fields.inner("pipeline");
  CHECK(pipeline.inner("0").find("$changeStream"));
  const Fields match = pipeline.inner("1").inner("$match");
  const auto texts = [](const Fields& array) {
    std::vector<std::string> all;
    for (const Field& each : array.all()) {
      all.push_back(each.text().value_or(""));
    }
    return all;
  };
  using Texts = std::vector<std::string>;
  CHECK(texts(match.inner("documentKey._id").inner("$in")) == Texts{"a", "b"});
  const Fields message = match.inner("$or").inner("1");
  CHECK(texts(message.inner("updateDescription.updatedFields.messages.channel").inner("$in")) == Texts{"x", "y", "z"});
  CHECK_FALSE(match.inner("$or").inner("0").inner("updateDescription").flag("$exists"));
}
