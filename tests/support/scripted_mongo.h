// SPDX-License-Identifier: Apache-2.0
// A server that speaks as much of MongoDB's protocol as a test needs. It claims to be the primary server of a replica set, where
// one lock, "k", has a document.
#pragma once

#include "store/mongo/mongo_document.h"
#include "support/hostile_server.h"

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace rlock::test {

using mongo::Document;

// Skips the test case where there is no libmongoc.
void need_libmongoc();

// The answer to the first request of libmongoc, an OP_QUERY: an OP_REPLY with one document.
std::string reply_to(std::string_view request, const std::string& document);
// The answer to a later request, an OP_MSG.
std::string message_for(std::string_view request, const std::string& document);
Document mongo_hello(std::int32_t wire_version, bool is_primary);
std::string cursor_answer(std::string_view request, const char* batch, const std::vector<Document>& documents,
                          std::int64_t id);
std::string refusal(std::string_view request, std::int32_t code);

// What the server says to a change stream. An empty text hangs up.
struct StreamAnswers {
  std::function<std::string(const std::string& request)> opening = {};                 // missing: opens it
  std::function<std::string(const std::string& request, const Peer& peer)> more = {};  // missing: waits for changes
  bool has_other_listener = true;  // behind the listener of the test
  int silent_listeners = 0;        // before it
};

class ScriptedMongo {
 public:
  explicit ScriptedMongo(StreamAnswers answers = {});

  [[nodiscard]] std::string url() const;
  void send(const std::string& text);  // puts a message on the channel "mine" into the document
  void report_change() { m_unreported += 1; }
  // How often the document was read, a change stream was opened, and a client waited for its changes.
  [[nodiscard]] int looks() const { return m_looks; }
  [[nodiscard]] int openings() const { return m_openings; }
  [[nodiscard]] int waits() const { return m_waits; }
  std::string answer_at_change(const std::string& request, const Peer& peer);

 private:
  void serve(const Peer& peer);
  std::string answer_to(const std::string& request, const Peer& peer);
  [[nodiscard]] Document hello() const;
  [[nodiscard]] Document document() const;
  void take_listener(const mongo::Fields& command);

  StreamAnswers m_answers;
  std::atomic<int> m_looks = 0;
  std::atomic<int> m_openings = 0;
  std::atomic<int> m_waits = 0;
  std::atomic<int> m_unreported = 0;
  mutable std::mutex m_mutex;
  std::vector<std::string> m_messages;  // guarded by m_mutex
  std::string m_listener;               // of the test; guarded by m_mutex
  HostileServer m_server;               // its threads use the others
};

}  // namespace rlock::test
