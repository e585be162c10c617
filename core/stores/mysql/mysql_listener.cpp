// SPDX-License-Identifier: Apache-2.0
#include "stores/mysql/mysql_listener.h"

#include <algorithm>
#include <set>
#include <utility>
#include "base/text.h"
#include "stores/mysql/mysql_statements.h"

namespace rlock::mysql {
namespace {

constexpr int first_wait_ms = 20;
constexpr int longest_wait_ms = 400;
constexpr int longest_wait_unwoken_ms = 100;  // of a listener that no KILL QUERY wakes
constexpr const char* gate = "'rlock gate'";

std::string named_lock(const std::string& number) { return "concat('rlock_', " + number + ")"; }

std::string random_number(Rng& rng) { return std::to_string(static_cast<std::int64_t>(rng.next())); }

}  // namespace

std::string is_alive(const std::string& number) { return "is_used_lock(" + named_lock(number) + ") is not null"; }

std::string delete_listeners_sql(std::string_view lock, const std::string& condition)
{
  return "delete l, m from {listener} l left join {message} m on m.listener = l.listener where l.name = " +
         sql_text(lock) + " and " + condition;
}

std::string wake_sql(const std::string& listener) { return "kill query is_used_lock(" + named_lock(listener) + ")"; }

PollingSource::PollingSource(ConnectionSpec spec, const Clock& clock, std::unique_ptr<Rng> rng)
    : m_spec(std::move(spec)),
      m_clock(clock),
      m_tables(tables_for(m_spec.table)),
      m_connection(m_spec, clock),
      m_rng(std::move(rng)),
      m_number(random_number(*m_rng)),
      m_wait_ms(first_wait_ms),
      m_longest_wait_ms(longest_wait_ms)
{
}

// Locks are taken in the order of their names, and before the listeners of a lock.
std::string PollingSource::registration_sql(std::span<const LockChannel> channels)
{
  std::set<std::string> names;
  std::string rows;
  for (const LockChannel& each : channels) {
    names.emplace(each.lock);
    rows += (rows.empty() ? "" : ", ") +
            ("(" + m_number + ", " + sql_text(each.lock) + ", " + sql_text(each.channel) + ", utc_timestamp(6))");
  }
  std::string sql = "begin;";
  for (const std::string& name : names) {
    sql += touch_sql(name, random_number(*m_rng), m_tables) +
           delete_listeners_sql(name, "not (" + is_alive("l.listener") + ")") + ";";
  }
  return sql + "insert into {listener} (listener, name, channel, started) values " + rows + "; commit";
}

// A server that is told to KILL between two statements of a packet executes no further one and answers no more (MariaDB 10.11).
// So once another client may know this listener, its connection sends single statements only.
Result<Done> PollingSource::begin(std::span<const LockChannel> channels, const CallLimits& limit)
{
  const auto noted =
      m_connection.ask("select get_lock(" + named_lock(m_number) + ", 0);" + registration_sql(channels), limit);
  if (!noted) {
    m_connection.drop();
    return noted.error();
  }
  send();
  const auto taken = take_answers();
  if (!taken) {
    m_connection.drop();
  }
  return taken;
}

// libmariadb may have read an answer with the sending of its question. Then the descriptor does not become readable, and the server,
// which waits for nothing, tells of no message.
Result<Done> PollingSource::take_answers()
{
  for (;;) {
    ASSIGN_OR_RETURN(const auto received, receive({.deadline = m_clock.now(), .stop = StopToken::never()}));
    if (!received) {
      return Done{};
    }
    send();
  }
}

Result<Done> PollingSource::add(std::span<const LockChannel> channels, const CallLimits& limit)
{
  Connection other(m_spec, m_clock);
  RETURN_IF_ERROR(other.ask(registration_sql(channels), limit));
  return Done{};
}

bool PollingSource::waits_at_gate() const
{
  return !m_has_gate && m_connection.version().find("MariaDB") != std::string::npos;
}

// No wait where there is a message already: a KILL QUERY that came before the wait has done nothing.
void PollingSource::send()
{
  const std::string own = "{message} where listener = " + m_number;
  switch (m_step) {
    case Step::wait:
      m_connection.send("select " + (waits_at_gate() ? "get_lock(" + std::string(gate) + ", " : std::string("sleep(")) +
                        std::to_string(m_wait_ms) + "e-3) from dual where not exists (select 1 from " + own + ")");
      m_wait_ms = std::min(m_wait_ms * 2, m_longest_wait_ms);
      break;
    case Step::look: m_connection.send("select id, channel, body from " + own + " order by id"); break;
    case Step::tidy: {
      std::string ids = joined(m_taken, ", ");
      m_connection.send("delete from {message} where id in (" + ids + ")");
      break;
    }
  }
}

// A KILL QUERY may undo the deletion of rows that were heard, without an error (MariaDB 10.11).
void PollingSource::take(Rows& rows)
{
  const std::set<std::string> before(m_taken.begin(), m_taken.end());
  m_taken.clear();
  for (Row& row : rows) {
    m_taken.push_back(row[0].value_or("0"));
    if (!before.contains(m_taken.back())) {
      m_heard.push_back({row[1].value_or(""), row[2].value_or("")});
    }
  }
  if (!m_heard.empty()) {
    m_wait_ms = first_wait_ms;
    m_longest_wait_ms = m_has_run_out ? longest_wait_unwoken_ms : m_longest_wait_ms;
  }
}

// A step that was killed is done again, except the wait.
Result<bool> PollingSource::receive(const CallLimits& limit)
{
  auto answer = m_connection.receive(limit);
  if (answer && !*answer) {
    return false;
  }
  const bool is_killed = !answer && m_connection.refusal() == Refusal::killed;
  if (!answer && !is_killed) {
    return answer.error();
  }
  if (m_step == Step::wait) {
    const Rows& waited = is_killed ? Rows() : (*answer)->front();
    const bool is_granted = waits_at_gate() && !waited.empty() && waited[0][0] == "1";
    m_has_gate = m_has_gate || is_granted;
    m_has_run_out = !waited.empty() && waited[0][0] == "0";
    m_step = Step::look;
  } else if (!is_killed) {
    const bool has_looked = m_step == Step::look;
    if (has_looked) {
      take((*answer)->front());
    }
    m_step = has_looked && !m_taken.empty() ? Step::tidy : Step::wait;
  }
  return true;
}

Result<std::optional<Message>> PollingSource::next(const CallLimits& limit)
{
  while (m_heard.empty()) {
    if (m_connection.fd() < 0) {
      return Error{ErrorCode::unreachable, "lost the connection to " + m_connection.where() + " that listens"};
    }
    ASSIGN_OR_RETURN(const auto received, receive(limit));
    if (!received) {
      return std::optional<Message>{};
    }
    send();
  }
  Message first = std::move(m_heard.front());
  m_heard.pop_front();
  return std::optional(std::move(first));
}

}  // namespace rlock::mysql
