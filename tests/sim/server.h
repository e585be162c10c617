// SPDX-License-Identifier: Apache-2.0
// A simulated Redis server: the model, the scripts and a wall clock that may be set.
#pragma once

#include "sim/model_redis.h"
#include "sim/world.h"
#include "store/record/script_interpreter.h"

#include <map>
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

  void begin_again();  // as new, for another schedule
  // From now on the scripts are changed so. Throws std::logic_error if no script has a part.
  void break_scripts(const std::vector<Replacement>& replacements);

  Value execute(const Words& words);
  KeySpace& redis();  // at the time of now

  void step_clock(Millis by) { m_clock_offset += nanos(by); }
  void forget_scripts() { m_known_scripts.clear(); }
  void forget_data() { m_redis.replace({}); }
  void remember_data() { m_remembered = m_redis.keys(); }  // as a replica that gets no later writes
  void return_to_remembered_data() { m_redis.replace(m_remembered); }

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
};

// "plain_acquire"; empty: the request runs no script.
std::string script_of(const Words& request);

}  // namespace rlock::sim
