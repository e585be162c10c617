// SPDX-License-Identifier: Apache-2.0
#include "sim/server.h"

#include "lua/scripts.h"

#include <algorithm>
#include <iterator>
#include <stdexcept>

namespace rlock::sim {
namespace {

const Script* with_source(const std::string& source)
{
  const auto* const found = std::find_if(std::begin(scripts::all), std::end(scripts::all),
                                         [&](const Script* each) { return each->source() == source; });
  return found == std::end(scripts::all) ? nullptr : *found;
}

const Script* with_hash(const std::string& sha1)
{
  const auto* const found = std::find_if(std::begin(scripts::all), std::end(scripts::all),
                                         [&](const Script* each) { return each->sha1 == sha1; });
  return found == std::end(scripts::all) ? nullptr : *found;
}

}  // namespace

void Server::begin_again()
{
  m_clock_offset = 0;
  m_remembered.clear();
  m_remembered_log = {};
  m_rule_time.reset();
  forget_scripts();
  forget_data();
}

void Server::forget_data()
{
  m_redis.replace({});
  m_log = {};
  m_bindings.clear();
  m_record_time = 0;
  if (m_sessions.data_lost) {
    m_sessions.data_lost();
  }
  change_version();
}

void Server::remember_data()
{
  m_remembered = m_redis.keys();
  m_remembered_log = m_log;
}

void Server::return_to_remembered_data()
{
  m_redis.replace(m_remembered);
  m_log = m_remembered_log;
  change_version();
}

void Server::write_record(record::LockRecord record, const record::LogChange& change)
{
  m_redis.replace(std::move(record.keys));
  m_log.base = record.log_base;
  m_record_time = record.time_us;
  m_bindings = std::move(record.bindings);
  if (change.first_kept) {
    m_log.entries.erase(m_log.entries.begin(), m_log.entries.lower_bound(*change.first_kept));
  }
  if (change.last_kept) {
    m_log.entries.erase(m_log.entries.upper_bound(*change.last_kept), m_log.entries.end());
  }
  for (const record::LoggedEvent& event : change.written) {
    m_log.entries[event.id] = event.entry;
  }
  change_version();
}

record::LockRecord Server::record()
{
  return {.keys = redis().keys(), .log_base = m_log.base, .time_us = m_record_time, .bindings = m_bindings};
}

Nanos Server::presence_lasts_for(const std::string& owner) const
{
  const auto bound = m_bindings.find(owner);
  Nanos longest = 0;
  for (const record::BoundPresence& each :
       bound == m_bindings.end() ? std::vector<record::BoundPresence>() : bound->second) {
    longest = std::max(longest, m_sessions.lasts_for(each.id));
  }
  return longest;
}

void Server::break_scripts(const std::vector<Replacement>& replacements)
{
  m_replacements = replacements;
  m_sources.clear();
  for (const Replacement& each : replacements) {
    const bool is_there = std::any_of(std::begin(scripts::all), std::end(scripts::all), [&](const Script* script) {
      return script->source().find(each.part) != std::string::npos;
    });
    if (!is_there) {
      throw std::logic_error("no script has the text: " + each.part);
    }
  }
}

const std::string& Server::source_of(const std::string& sha1)
{
  std::string& source = m_sources[sha1];
  if (source.empty()) {
    source = with_hash(sha1)->source();
    for (const auto& [part, other] : m_replacements) {
      for (std::size_t at = source.find(part); at != std::string::npos; at = source.find(part, at + other.size())) {
        source.replace(at, part.size(), other);
      }
    }
  }
  return source;
}

void Server::set_time()
{
  const std::int64_t now = has_sessions() ? m_record_time : (epoch + World::current().now() + m_clock_offset) / 1000;
  m_redis.set_time(m_rule_time.value_or(now));
}

KeySpace& Server::redis()
{
  set_time();
  return m_redis;
}

Reply Server::execute(const Words& words)
{
  if (words[0] == "HELLO") {
    return Reply::list({"role", "master"});
  }
  set_time();
  change_version();
  const bool by_hash = words[0] == "EVALSHA";
  if (!by_hash && words[0] != "EVAL") {
    return m_redis.command(words);
  }
  const std::string sha1(by_hash ? words.at(1) : with_source(words.at(1))->sha1);
  if (by_hash && !m_known_scripts.contains(sha1)) {
    return Reply::error("NOSCRIPT No matching script. Please use EVAL.");
  }
  m_known_scripts.insert(sha1);
  const auto first_arg = words.begin() + 3 + std::stol(words.at(2));
  return m_lua.run(source_of(sha1), Words(words.begin() + 3, first_arg), Words(first_arg, words.end()));
}

std::string script_of(const Words& request)
{
  const Script* const script = request[0] == "EVALSHA" ? with_hash(request.at(1))
                               : request[0] == "EVAL"  ? with_source(request.at(1))
                                                       : nullptr;
  return script == nullptr ? "" : std::string(script->name);
}

}  // namespace rlock::sim
