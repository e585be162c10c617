// SPDX-License-Identifier: Apache-2.0
#include "store/mysql/mysql_backend.h"

#include <fnmatch.h>
#include <algorithm>
#include <charconv>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>
#include "base/defaults.h"
#include "base/text.h"
#include "store/mysql/mysql_checks.h"
#include "store/mysql/mysql_connection.h"
#include "store/mysql/mysql_listener.h"
#include "store/mysql/mysql_schema.h"

namespace rlock::mysql {
namespace {

using record::Backend;
using record::Change;
using record::Commit;
using record::Committed;
using record::Conflict;
using record::Snapshot;
using record::Version;

constexpr std::uint64_t commits_per_cleaning = 128;

// NULL for 0; at most the end of the year 9999, which is the last that DATETIME has.
std::string time_literal(std::int64_t micros)
{
  constexpr std::int64_t last = 253'402'300'799'000'000;
  return micros == 0 ? "null"
                     : "date_add('1970-01-01', interval " + std::to_string(std::min(micros, last)) + " microsecond)";
}

// The row of the lock, if it has this version.
std::string has_version(std::string_view name, const std::string& version)
{
  return "name = " + sql_text(name) + " and version = " + version;
}

std::string write_record(std::string_view name, const Version& version, const std::string& next, const Change& change)
{
  const std::string record = sql_bytes(change.bytes);
  const std::string holder = change.face.holder.empty() ? "null" : sql_text(change.face.holder);
  const std::string until = time_literal(change.face.until_us);
  const std::string forget = time_literal(change.face.forget_us);
  if (version
          .empty()) {  // a name that is there is no error, which would leave a transaction open until the client ends it
    return "insert into rlock_lock (name, version, record, locked_by, lock_until, forget_at) values (" +
           sql_text(name) + ", " + next + ", " + record + ", " + holder + ", " + until + ", " + forget +
           ") on duplicate key update version = version;";
  }
  return "update rlock_lock set version = " + next + ", record = " + record + ", locked_by = " + holder +
         ", lock_until = " + until + ", forget_at = " + forget + " where " + has_version(name, version) + ";";
}

// `is_mine` is true if this commit has written the record.
std::string write_log(std::string_view name, const record::LogChange& log, const std::string& is_mine)
{
  std::string sql;
  std::string rows;
  for (const record::LoggedEvent& event : log.written) {
    rows += (rows.empty() ? "select " : " union all select ") + std::to_string(event.id) + " as id, " +
            sql_bytes(event.entry) + " as entry";
  }
  if (!rows.empty()) {
    sql += "insert into rlock_event (name, id, entry) select " + sql_text(name) + ", t.id, t.entry from (" + rows +
           ") t where " + is_mine + " on duplicate key update entry = values(entry);";
  }
  const std::string delete_of_lock = "delete from rlock_event where name = " + sql_text(name) + " and id ";
  if (log.first_kept) {
    sql += delete_of_lock + "< " + std::to_string(*log.first_kept) + " and " + is_mine + ";";
  }
  if (log.last_kept) {
    sql += delete_of_lock + "> " + std::to_string(*log.last_kept) + " and " + is_mine + ";";
  }
  return sql;
}

std::string write_messages(std::string_view name, const Change& change, const std::string& is_mine)
{
  std::string rows;
  int place = 0;
  for (const Message& each : change.messages) {
    rows += (rows.empty() ? "select " : " union all select ") + std::to_string(++place) + " as place, " +
            sql_text(each.channel) + " as channel, " + sql_text(each.text) + " as body";
  }
  return rows.empty()
             ? ""
             : "insert into rlock_message (listener, channel, body, sent) select l.listener, t.channel, t.body, "
               "utc_timestamp(6) from rlock_listener l join (" +
                   rows + ") t on l.channel = t.channel where l.name = " + sql_text(name) + " and " + is_mine +
                   " order by t.place;";
}

// The listeners to wake.
std::string heard_by(std::string_view name, const Change& change)
{
  std::string channels;
  for (const Message& each : change.messages) {
    channels += (channels.empty() ? "" : ", ") + sql_text(each.channel);
  }
  return channels.empty() ? ""
                          : ";select distinct listener from rlock_listener where name = " + sql_text(name) +
                                " and channel in (" + channels + ") and " + is_alive("listener");
}

class MysqlBackend final : public Backend {
 public:
  MysqlBackend(ConnectionSpec spec, const Clock& clock, std::unique_ptr<Rng> rng)
      : m_spec(std::move(spec)), m_clock(clock), m_rng(std::move(rng)), m_connection(m_spec, clock)
  {
  }

  // utc_timestamp() is the time at which the server began with the statement: not before the sending, and not after the
  // snapshot, which is one for all tables of the statement.
  Result<Snapshot> read(std::string_view name, const CallLimits& limit) override
  {
    if (const auto checked = check(name); !checked) {
      return checked.error();
    }
    auto answer =
        ask("select timestampdiff(microsecond, '1970-01-01', utc_timestamp(6)), r.version, r.record, null "
            "from (select 1 as one) one left join rlock_lock r on r.name = " +
                sql_text(name) + " union all select null, null, null, l.channel from rlock_listener l where l.name = " +
                sql_text(name) + " and " + is_alive("l.listener"),
            limit);
    if (!answer) {
      return answer.error();
    }
    Snapshot state{};
    for (Row& row : answer->back()) {
      if (row[3]) {
        state.listeners.push_back(*std::move(row[3]));
      } else if (row[0]) {
        std::from_chars(row[0]->data(), row[0]->data() + row[0]->size(), state.time_us);
        state.version = row[1].value_or("");
        state.bytes = std::move(row[2]).value_or("");
      }
    }
    if (state.time_us == 0) {
      return Error{ErrorCode::internal, m_connection.where() + " answered a read without its time"};
    }
    std::ranges::sort(state.listeners);
    return state;
  }

  // All in one packet, so that a client that is stopped holds no row of a transaction that waits for it.
  Result<Commit> write_if(std::string_view name, const Version& version, const Change& change,
                          const CallLimits& limit) override
  {
    const std::string next = std::to_string(static_cast<std::int64_t>(m_rng->next()));
    const std::string is_mine = "exists (select 1 from rlock_lock where " + has_version(name, next) + ")";
    const auto answer = m_connection.ask(
        "begin;" + write_record(name, version, next, change) + write_log(name, change.log, is_mine) +
            write_messages(name, change, is_mine) + "select " + is_mine + ";commit" + heard_by(name, change),
        limit);
    if (!answer) {
      m_connection.drop();
      return m_connection.refusal() == Refusal::conflict ? Result<Commit>(Conflict{}) : answer.error();
    }
    if (answer->front().front()[0] != "1") {
      return Commit{Conflict{}};
    }
    if (!change.messages.empty()) {
      wake(answer->back(), limit);
    }
    clean_now_and_then(limit);
    return Commit{Committed{next}};
  }

  Result<std::unique_ptr<MessageSource>> listen(std::span<const LockChannel> channels, const CallLimits& limit) override
  {
    auto source = std::make_unique<PollingSource>(m_spec, m_clock, std::make_unique<SystemRng>());
    const auto listening = source->begin(channels, limit);
    if (!listening) {
      return listening.error();
    }
    return std::unique_ptr<MessageSource>(std::move(source));
  }

  Result<std::vector<std::string>> events(std::string_view name, const CallLimits& limit) override
  {
    return column(ask("select entry from rlock_event where name = " + sql_text(name) + " order by id", limit));
  }

  Result<std::vector<std::string>> list(std::string_view glob, Which which, const CallLimits& limit) override
  {
    auto names = column(ask(which == Which::held
                                ? "select name from rlock_lock where locked_by is not null and (lock_until is null or "
                                  "lock_until > utc_timestamp(6)) order by name"
                                : "select distinct name from rlock_event order by name",
                            limit));
    if (names) {
      const std::string pattern(glob);
      std::erase_if(*names, [&](const std::string& name) { return ::fnmatch(pattern.c_str(), name.c_str(), 0) != 0; });
    }
    return names;
  }

  Result<Done> erase(std::string_view name, const CallLimits& limit) override
  {
    const std::string row = " where name = " + sql_text(name);
    const auto erased = m_connection.ask(
        delete_listeners_sql(name, "true") + ";delete from rlock_event" + row + ";delete from rlock_lock" + row, limit);
    return erased ? Result(Done{}) : Result<Done>(erased.error());
  }

  Result<std::vector<Finding>> check_server(const CallLimits& limit) override
  {
    return mysql::check_server(m_connection, m_spec, m_clock, limit);
  }

  void drop_connection() override { m_connection.drop(); }

 private:
  // MySQL compares without spaces at the end, also in this collation.
  [[nodiscard]] Result<Done> check(std::string_view name) const
  {
    const auto characters = static_cast<std::size_t>(std::ranges::count_if(name, begins_character));
    if (characters > longest_name) {
      return Error{ErrorCode::config, m_spec.url + ": the name of a lock has at most 255 characters there"};
    }
    if (name.ends_with(' ')) {
      return Error{ErrorCode::config, m_spec.url + ": the name of a lock cannot end with a space there"};
    }
    return Done{};
  }

  // Makes the tables where there are none. Two clients may do that at once; the one that fails asks again.
  Result<Answer> ask(const std::string& sql, const CallLimits& limit)
  {
    constexpr int most_tries = 3;
    auto answer = m_connection.ask(sql, limit);
    for (int tries = 0; !answer && m_connection.refusal() == Refusal::no_such_table && tries < most_tries; ++tries) {
      if (!m_spec.creates_tables) {
        return Error{ErrorCode::config, m_connection.where() +
                                            " has no table rlock_lock (leave out create=no once, or "
                                            "make the tables that rlock acl prints)"};
      }
      const auto made = m_connection.ask(std::string(create_tables_sql), limit);
      if (!made && made.error().code == ErrorCode::refused) {
        return made.error();
      }
      answer = m_connection.ask(sql, limit);
    }
    return answer;
  }

  // The first column of all rows.
  static Result<std::vector<std::string>> column(const Result<Answer>& answer)
  {
    if (!answer) {
      return answer.error();
    }
    std::vector<std::string> values;
    for (const Row& row : answer->back()) {
      values.push_back(row[0].value_or(""));
    }
    return values;
  }

  // A listener that cannot be woken finds its message by itself.
  void wake(const Rows& listeners, const CallLimits& limit)
  {
    for (const Row& each : listeners) {
      [[maybe_unused]] const auto woken = m_connection.ask(wake_sql(each[0].value_or("0")), limit);
    }
  }

  // An error is not reported: a later commit cleans.
  void clean_now_and_then(const CallLimits& limit)
  {
    if (below(*m_rng, commits_per_cleaning) == 0) {
      const std::string old = " < date_sub(utc_timestamp(6), interval 1 hour) ";
      [[maybe_unused]] const auto cleaned = m_connection.ask(
          "delete from rlock_message where sent" + old + "limit 100;" + "delete from rlock_listener where started" +
              old + "and not (" + is_alive("listener") + ") limit 100;" +
              "delete e from rlock_event e join (select name from rlock_lock where forget_at" + old +
              "limit 100) gone on gone.name = e.name join rlock_lock l on l.name = e.name and l.forget_at" + old + ";" +
              "delete from rlock_lock where forget_at" + old + "order by forget_at limit 100",
          limit);
    }
  }

  ConnectionSpec m_spec;
  const Clock& m_clock;
  std::unique_ptr<Rng> m_rng;
  Connection m_connection;
};

}  // namespace

std::unique_ptr<Backend> open_backend(ConnectionSpec spec, const Clock& clock, std::unique_ptr<Rng> rng)
{
  return std::make_unique<MysqlBackend>(std::move(spec), clock, std::move(rng));
}

}  // namespace rlock::mysql
