// SPDX-License-Identifier: Apache-2.0
#include "support/scripted_mongo.h"

#include "store/mongo/mongo_layout.h"
#include "support/skip.h"

#include <algorithm>
#include <utility>

namespace rlock::test {
namespace {

using mongo::Field;
using mongo::Fields;

void append(std::string& bytes, std::uint32_t number)
{
  for (int shift = 0; shift < 32; shift += 8) {
    bytes += static_cast<char>(number >> shift & 0xFFU);
  }
}

constexpr std::size_t head_size = 21;

}  // namespace

std::string reply_to(std::string_view request, const std::string& document)
{
  std::string message;
  append(message, static_cast<std::uint32_t>(36 + document.size()));
  append(message, 1);
  message += request.substr(4, 4);  // the number of the request
  append(message, 1);               // OP_REPLY
  append(message, 8);               // flags
  append(message, 0);               // cursor
  append(message, 0);
  append(message, 0);
  append(message, 1);  // one document
  return message + document;
}

std::string message_for(std::string_view request, const std::string& document)
{
  std::string message;
  append(message, static_cast<std::uint32_t>(21 + document.size()));
  append(message, 1);
  message += request.substr(4, 4);
  append(message, 2013);  // OP_MSG
  append(message, 0);     // flags
  message += '\0';        // one document
  return message + document;
}

Document mongo_hello(std::int32_t wire_version, bool is_primary)
{
  Document document;
  document.add_flag("ismaster", is_primary).add_flag("isWritablePrimary", is_primary).add_flag("helloOk", true);
  document.add_small("minWireVersion", 0).add_small("maxWireVersion", wire_version).add_small("ok", 1);
  document.add_small("maxBsonObjectSize", 1 << 24).add_small("maxMessageSizeBytes", 48'000'000);
  document.add_small("maxWriteBatchSize", 100'000);
  return document;
}

void need_libmongoc()
{
  if (!rlock::mongo::libmongoc()) {
    skip("no libmongoc");
  }
}

std::string cursor_answer(std::string_view request, const char* batch, const std::vector<Document>& documents,
                          std::int64_t id)
{
  const Document cursor = std::move(Document().add("id", id).add("ns", "app.rlock_lock").add(batch, documents));
  return message_for(request, Document().add("cursor", cursor).add_small("ok", 1).bytes());
}

std::string refusal(std::string_view request, std::int32_t code)
{
  return message_for(request, Document().add_small("ok", 0).add("errmsg", "no").add_small("code", code).bytes());
}

std::string ScriptedMongo::url() const { return "mongodb://127.0.0.1:" + std::to_string(m_server.port()) + "/app"; }

ScriptedMongo::ScriptedMongo(StreamAnswers answers)
    : m_answers(std::move(answers)), m_server([this](const Peer& peer) { serve(peer); }, Endpoint::Kind::tcp)
{
}

void ScriptedMongo::serve(const Peer& peer)
{
  for (std::string request = peer.hear_some(); request.size() > head_size; request = peer.hear_some()) {
    const bool is_message = request.substr(12, 2) == "\xdd\x07";
    const std::string answer = is_message ? answer_to(request, peer) : reply_to(request, hello().bytes());
    if (answer.empty() || !peer.say(answer)) {
      return;
    }
  }
}

Document ScriptedMongo::hello() const
{
  Document document = mongo_hello(17, true);
  document.add_time("localTime", wall_clock_ms()).add("setName", "rs0");
  return document;
}

std::string ScriptedMongo::answer_to(const std::string& request, const Peer& peer)
{
  const Fields command(std::string_view(request).substr(head_size));
  const auto first = command.all();
  const std::string name = first.empty() ? "" : first.front().key();
  if (name == "hello") {
    return message_for(request, hello().bytes());
  }
  if (name == "find") {
    m_looks += 1;
    std::vector<Document> documents;
    documents.push_back(document());
    return cursor_answer(request, "firstBatch", documents, 0);
  }
  if (name == "aggregate") {
    m_openings += 1;
    return m_answers.opening ? m_answers.opening(request) : cursor_answer(request, "firstBatch", {}, 7);
  }
  if (name == "getMore") {
    m_waits += 1;
    return m_answers.more ? m_answers.more(request, peer) : answer_at_change(request, peer);
  }
  if (name == "update") {
    take_listener(command);
  }
  return message_for(request, Document().add_small("n", 1).add_small("ok", 1).bytes());
}

// With a change when one was reported; with none when the time is over. Empty: the client is gone.
std::string ScriptedMongo::answer_at_change(const std::string& request, const Peer& peer)
{
  const auto wait = Fields(std::string_view(request).substr(head_size)).number("maxTimeMS");
  const Instant until = real_clock.now() + Millis(wait);
  while (real_clock.now() < until) {
    int unreported = m_unreported;
    if (unreported > 0 && m_unreported.compare_exchange_strong(unreported, unreported - 1)) {
      std::vector<Document> changes(1);
      changes.front().add("_id", Document().add("_data", "82"));
      return cursor_answer(request, "nextBatch", changes, 7);
    }
    if (!peer.lasts(Millis(1))) {
      return "";
    }
  }
  return cursor_answer(request, "nextBatch", {}, 7);
}

// The first listener of the document, and another one behind it.
Document ScriptedMongo::document() const
{
  const std::scoped_lock lock(m_mutex);
  std::vector<Document> messages;
  for (const std::string& text : m_messages) {
    messages.emplace_back();
    messages.back().add("id", static_cast<std::int64_t>(messages.size())).add("channel", "mine").add("text", text);
  }
  const auto listener = [](std::int64_t seen) { return std::move(Document().add_time("seen", seen)); };
  Document listeners;
  for (int i = 1; i <= m_answers.silent_listeners; ++i) {
    listeners.add("l1" + std::to_string(i), listener(wall_clock_ms() - mongo::listener_life.count()));
  }
  if (!m_listener.empty()) {
    listeners.add(m_listener, listener(wall_clock_ms()));
  }
  if (m_answers.has_other_listener) {
    listeners.add("l2", listener(wall_clock_ms()));
  }
  return std::move(Document().add("_id", "k").add("messages", messages).add("listeners", listeners));
}

void ScriptedMongo::take_listener(const Fields& command)
{
  constexpr std::string_view begin = "listeners.";
  constexpr std::string_view end = ".channels";
  for (const Field& each : command.inner("updates").inner("0").inner("u").inner("$set").all()) {
    const std::string key = each.key();
    if (key.starts_with(begin) && key.ends_with(end)) {
      const std::scoped_lock lock(m_mutex);
      m_listener = key.substr(begin.size(), key.size() - begin.size() - end.size());
    }
  }
}

void ScriptedMongo::send(const std::string& text)
{
  const std::scoped_lock lock(m_mutex);
  m_messages.push_back(text);
}

}  // namespace rlock::test
