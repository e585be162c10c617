// SPDX-License-Identifier: Apache-2.0
// What a server of ZooKeeper sends, and what stands in its nodes. Input: a digit for the operation that is answered; then the frame,
// which is also read as a node's data and as a node's name.
#include "fuzz/fuzzer.h"
#include "stores/zookeeper/messages.h"
#include "stores/zookeeper/zookeeper_layout.h"

#include <array>
#include <vector>

namespace rlock::test {
namespace {

using namespace zookeeper;

std::vector<Operation> operations()
{
  const std::array two{check("/a", 1), set_data("/a", "b", 1)};
  return {create("/a", "b", CreateMode::ephemeral, false),
          get_data("/a", false),
          get_children("/a"),
          exists("/a", true),
          set_data("/a", "b", 1),
          zookeeper::remove("/a", 1),
          multi(two),
          sync("/a"),
          ping(),
          close_session()};
}

std::size_t size_of(const Answer& answer)
{
  std::size_t size = answer.data.size();
  for (const std::string& child : answer.children) {
    size += child.size();
  }
  return size;
}

void check_answer(const Operation& operation, const Received& head, std::size_t longest)
{
  const auto answer = answer_to(operation, head);
  if (!answer) {
    return;
  }
  promise(size_of(*answer) <= longest, "an answer is no longer than its frame");
  promise(answer->children.size() <= longest && answer->parts.size() <= longest,
          "an answer has no more parts than its frame has bytes");
  promise(!answer->is_ok() || answer->parts.size() == operation.parts,
          "each part of a multi that happened has an answer");
  promise(answer->zxid == head.zxid, "an answer has the number of its change");
}

void check_frame(std::string_view frame, const Operation& operation)
{
  if (const auto session = connected(frame)) {
    promise(session->timeout_ms >= 0, "no session has a negative timeout");
    promise(session->session.password.size() <= frame.size(), "a password is no longer than its frame");
  }
  if (const auto event = watch_event(frame)) {
    promise(event->path.size() <= frame.size(), "a path is no longer than its frame");
  }
  if (const auto head = received(frame)) {
    check_answer(operation, *head, frame.size());
  }
}

void check_data(std::string_view data)
{
  if (const auto record = record_data(data)) {
    const auto same = record_data(encoded(record->bytes, record->face));
    promise(same && same->bytes == record->bytes && same->face.holder == record->face.holder &&
                same->face.until_us == record->face.until_us && same->face.forget_us == record->face.forget_us,
            "a record that is written is read as it was");
  }
  const Inbox inbox = inbox_of(data);
  const Inbox same = inbox_of(encoded(inbox));
  promise(same.last == inbox.last && same.texts == inbox.texts, "an inbox that is written is read as it was");
}

void check_names(std::string_view text)
{
  const std::string name = node_name(text);
  promise(name.find('/') == std::string::npos && name.find('\0') == std::string::npos && name != "." && name != "..",
          "the name of a node is one", name);
  promise(text_of_node(name) == std::string(text), "and means its text", name);
  const std::string id = "0123456789abcdef";
  Input input(text);
  const std::string lock(input.line());
  const std::string channel(input.rest());
  const std::string listener = listener_name(id, lock, channel);
  promise(channel_of_listener(listener, lock) == channel, "the name of a listener means its channel", listener);
  static_cast<void>(channel_of_listener(text, "stock"));
}

}  // namespace

void fuzz_zookeeper(std::string_view bytes)
{
  Input input(bytes);
  const std::vector<Operation> all = operations();
  const Operation& operation = all[input.choice(all.size())];
  check_frame(input.rest(), operation);
  check_data(input.rest());
  check_names(input.rest());
}

}  // namespace rlock::test
