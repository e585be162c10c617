// SPDX-License-Identifier: Apache-2.0
// A simulated Redis server: the model, the scripts and a wall clock that may be set.
#pragma once

#include "engine/record_backend.h"
#include "engine/record_codec.h"
#include "engine/script_interpreter.h"
#include "sim/model_redis.h"
#include "sim/world.h"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace rlock::sim {

// A change of the scripts, to show that the rules notice it: `part` becomes `other` wherever it is.
struct Replacement {
  std::string part;
  std::string other;
};

class Server {
 public:
  Server() : m_lua(m_redis) {}

  static constexpr Nanos epoch = 1'700'000'000'000'000'000;  // the wall clock at the start of a schedule

  void begin_again();  // as new, for another schedule
  // From now on the scripts are changed so. Throws std::logic_error if no script has a part.
  void break_scripts(const std::vector<Replacement>& replacements);

  Reply execute(const Words& words);
  KeySpace& redis();  // at the time of now

  void step_clock(Millis by) { m_clock_offset += nanos(by); }
  void forget_scripts() { m_known_scripts.clear(); }
  void forget_data();
  void remember_data();  // as a replica that gets no later writes
  void return_to_remembered_data();

  // For a store of records, whose one record has these keys: the version of the record, and the event log beside it.
  struct Log {
    std::int64_t base = 0;
    std::map<std::int64_t, std::string> entries;
  };
  [[nodiscard]] const Log& log() const { return m_log; }
  [[nodiscard]] std::string version() const { return std::to_string(m_version); }
  void change_version() { m_version = ++m_last_version; }
  void reuse_version() { m_version = 1 + m_last_version % 3; }  // a mistake
  void write_record(record::LockRecord record, const record::LogChange& change);
  [[nodiscard]] record::LockRecord record();
  // With sessions the time is that of the last script on the record, and holds end with presences.
  struct Sessions {
    std::function<Nanos(const record::PresenceId&)> lasts_for = nullptr;  // 0: it is gone
    std::function<void()> data_lost = nullptr;
  };
  void follow_sessions(Sessions sessions) { m_sessions = std::move(sessions); }
  [[nodiscard]] bool has_sessions() const { return m_sessions.lasts_for != nullptr; }
  // For how long the presences last to which the record binds this owner; 0: it has none.
  [[nodiscard]] Nanos presence_lasts_for(const std::string& owner) const;
  // The time at which the rules look at the keys; nullopt: now.
  void set_rule_time(std::optional<std::int64_t> micros) { m_rule_time = micros; }

 private:
  void set_time();
  const std::string& source_of(const std::string& sha1);

  KeySpace m_redis;
  record::ScriptInterpreter m_lua;
  Nanos m_clock_offset = 0;
  std::set<std::string> m_known_scripts;
  std::map<std::string, std::string> m_sources;  // by hash; empty: not made yet
  std::vector<Replacement> m_replacements;
  KeySpace::Keys m_remembered;
  Log m_log;
  Log m_remembered_log;
  std::uint64_t m_version = 0;
  std::uint64_t m_last_version = 0;  // never begins again
  std::optional<std::int64_t> m_rule_time;
  Sessions m_sessions;
  std::int64_t m_record_time = 0;  // as LockRecord has it, like the bindings
  record::Bindings m_bindings;
};

// "plain_acquire"; empty: the request runs no script.
std::string script_of(const Words& request);

}  // namespace rlock::sim
