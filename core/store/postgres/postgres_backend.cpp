// SPDX-License-Identifier: Apache-2.0
#include "store/postgres/postgres_backend.h"

#include <fnmatch.h>
#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>
#include "store/postgres/postgres_checks.h"
#include "store/postgres/postgres_connection.h"
#include "store/postgres/postgres_schema.h"

namespace rlock::postgres {
namespace {

using record::Backend;
using record::Change;
using record::Commit;
using record::Committed;
using record::Conflict;
using record::Snapshot;
using record::Version;

// statement_timestamp() is the time at which the server got the statement: not before the sending, and not after the snapshot.
// The server hides backend_start of other users from users without rights; their listeners count as alive.
constexpr const char* read_sql = R"(
select (extract(epoch from statement_timestamp()) * 1000000)::bigint, r.version, r.record,
  (select string_agg(l.channel, E'\n' order by l.channel collate "C") from rlock_listener l where l.name = $1
     and exists (select from pg_stat_get_activity(l.pid) a
                 where a.backend_start = l.started or a.backend_start is null))
from (select 1) one left join rlock_lock r on r.name = $1)";

constexpr const char* insert_sql = R"(
with w as (insert into rlock_lock (name, version, record, locked_by, lock_until, forget_at)
  values ($1, $2::bigint, $3, $4, to_timestamp($5::float8), to_timestamp($6::float8))
  on conflict (name) do nothing returning name))";

constexpr const char* update_sql = R"(
with w as (update rlock_lock set version = $2::bigint, record = $3, locked_by = $4, lock_until = to_timestamp($5::float8),
  forget_at = to_timestamp($6::float8) where name = $1 and version = $7::bigint returning name))";

// A commit that a crash of the server may lose would let two jobs run.
constexpr const char* durable_sql = R"(
select case when current_setting('synchronous_commit') = 'off' then set_config('synchronous_commit', 'on', true) end from w)";

constexpr const char* listen_sql = R"(
with me as (select pid, backend_start from pg_stat_get_activity(pg_backend_pid())),
  wanted as (select * from unnest($1::text[], $2::text[], $3::bigint[]) as t(name, channel, version)),
  dead as (delete from rlock_listener l using (select distinct name from wanted) w where l.name = w.name
    and l.pid <> pg_backend_pid() and not exists (select from pg_stat_get_activity(l.pid) a
      where a.backend_start = l.started or a.backend_start is null)),
  mine as (insert into rlock_listener select w.name, w.channel, me.pid, me.backend_start from me, wanted w
    on conflict (name, channel, pid) do update set started = excluded.started)
insert into rlock_lock (name, version, record) select name, max(version), '' from wanted group by name order by name
on conflict (name) do update set version = excluded.version)";

constexpr const char* held_sql = R"(
select name from rlock_lock where locked_by is not null and (lock_until is null or lock_until > statement_timestamp())
  order by name)";
constexpr const char* with_events_sql = "select distinct name from rlock_event order by name";

// Rows that are of no use any more are deleted by now and then one commit, with the events of their locks.
constexpr const char* forget_sql = R"(
with dead as (delete from rlock_listener l where not exists (select from pg_stat_get_activity(l.pid) a
    where a.backend_start = l.started or a.backend_start is null)),
  gone as (delete from rlock_lock where name in (select name from rlock_lock
  where forget_at < statement_timestamp() - interval '1 hour' limit 100 for update skip locked) returning name)
delete from rlock_event e using gone where e.name = gone.name)";
constexpr const char* erase_sql = R"(
with l as (delete from rlock_listener where name = $1), e as (delete from rlock_event where name = $1)
delete from rlock_lock where name = $1)";
constexpr std::uint64_t commits_per_cleaning = 128;

// A channel of PostgreSQL has at most 63 bytes, so its name is a hash (FNV-1a), and the message begins with the channel.
std::string notify_channel(std::string_view channel)
{
  std::uint64_t hash = 1469598103934665603U;
  for (const char byte : channel) {
    hash = (hash ^ static_cast<unsigned char>(byte)) * 1099511628211U;
  }
  std::string digits;
  for (int shift = 60; shift >= 0; shift -= 4) {
    digits += "0123456789abcdef"[hash >> shift & 0xFU];
  }
  return "rlock_" + digits;
}

// The text form of an array.
std::string array_of(const std::vector<std::string>& texts)
{
  std::string all = "{";
  for (const std::string& text : texts) {
    all += all.size() > 1 ? ",\"" : "\"";
    for (const char byte : text) {
      if (byte == '"' || byte == '\\') {
        all += '\\';
      }
      all += byte;
    }
    all += '"';
  }
  return all + "}";
}

std::string hex_of(std::string_view bytes)
{
  std::string text = "\\x";
  for (const char byte : bytes) {
    const auto value = static_cast<unsigned char>(byte);
    text += "0123456789abcdef"[value >> 4U];
    text += "0123456789abcdef"[value & 0xFU];
  }
  return text;
}

// Seconds since 1970, for to_timestamp; NULL for 0.
Parameter time_parameter(std::int64_t micros)
{
  const std::string fraction = std::to_string(micros % 1'000'000);
  return {.text = std::to_string(micros / 1'000'000) + "." + std::string(6 - fraction.size(), '0') + fraction,
          .is_null = micros == 0};
}

std::vector<std::string> lines_of(std::string_view text)
{
  std::vector<std::string> lines;
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

// A statement that is put together from parts, and its parameters.
struct Statement {
  std::string sql;
  std::vector<Parameter> parameters;

  // The number of the added parameter: "$8".
  std::string add(std::string text)
  {
    parameters.push_back({.text = std::move(text)});
    return "$" + std::to_string(parameters.size());
  }
};

void add_log(Statement& statement, const record::LogChange& log)
{
  if (!log.written.empty()) {
    std::vector<std::string> ids;
    std::vector<std::string> entries;
    for (const record::LoggedEvent& event : log.written) {
      ids.push_back(std::to_string(event.id));
      entries.push_back(hex_of(event.entry));
    }
    const std::string id_list = statement.add(array_of(ids));
    const std::string entry_list = statement.add(array_of(entries));
    statement.sql += ", e as (insert into rlock_event select w.name, t.id, t.entry from w, unnest(" + id_list +
                     "::bigint[], " + entry_list +
                     "::bytea[]) as t(id, entry) on conflict (name, id) do update set entry = excluded.entry)";
  }
  const std::string delete_of_lock = " as (delete from rlock_event using w where rlock_event.name = w.name and id ";
  if (log.first_kept) {
    statement.sql += ", p" + delete_of_lock + "< " + statement.add(std::to_string(*log.first_kept)) + "::bigint)";
  }
  if (log.last_kept) {
    statement.sql += ", d" + delete_of_lock + "> " + statement.add(std::to_string(*log.last_kept)) + "::bigint)";
  }
}

void add_messages(Statement& statement, std::span<const Message> messages)
{
  std::vector<std::string> channels;
  std::vector<std::string> texts;
  for (const Message& each : messages) {
    channels.push_back(notify_channel(each.channel));
    texts.push_back(each.channel + "\n" + each.text);
  }
  const std::string channel_list = statement.add(array_of(channels));
  const std::string text_list = statement.add(array_of(texts));
  statement.sql += ", n as materialized (select pg_notify(m.channel, m.text) from w, unnest(" + channel_list +
                   "::text[], " + text_list + "::text[]) with ordinality as m(channel, text, at))";
}

class NotifiedSource final : public MessageSource {
 public:
  NotifiedSource(const ConnectionSpec& spec, const Clock& clock, std::unique_ptr<Rng> rng)
      : m_connection(spec, clock), m_rng(std::move(rng))
  {
  }

  Result<Done> listen(std::span<const LockChannel> channels, const CallLimits& limit)
  {
    std::string sql;
    std::vector<std::string> names;
    std::vector<std::string> heard;
    std::vector<std::string> versions;
    for (const LockChannel& each : channels) {
      sql += "listen " + notify_channel(each.channel) + ";";
      names.emplace_back(each.lock);
      heard.emplace_back(each.channel);
      versions.push_back(std::to_string(static_cast<std::int64_t>(m_rng->next())));
    }
    if (const auto listening = m_connection.run(sql, limit); !listening) {
      return listening.error();
    }
    const std::array parameters{Parameter{array_of(names)}, Parameter{array_of(heard)}, Parameter{array_of(versions)}};
    const auto noted = m_connection.ask(listen_sql, parameters, limit);
    return noted ? Result(Done{}) : Result<Done>(noted.error());
  }
  Result<Done> add(const LockChannel& channel, const CallLimits& limit) override
  {
    return listen({&channel, 1}, limit);
  }

  Result<std::optional<Message>> next(const CallLimits& limit) override
  {
    auto text = m_connection.next_notification(limit);
    if (!text) {
      return text.error();
    }
    if (!*text) {
      return std::optional<Message>{};
    }
    const auto end = std::min((*text)->find('\n'), (*text)->size());
    return std::optional(Message{(*text)->substr(0, end), (*text)->substr(std::min(end + 1, (*text)->size()))});
  }
  [[nodiscard]] int fd() const override { return m_connection.fd(); }

 private:
  Connection m_connection;
  std::unique_ptr<Rng> m_rng;
};

class PostgresBackend final : public Backend {
 public:
  PostgresBackend(ConnectionSpec spec, const Clock& clock, std::unique_ptr<Rng> rng)
      : m_spec(std::move(spec)), m_clock(clock), m_rng(std::move(rng)), m_connection(m_spec, clock)
  {
  }

  Result<Snapshot> read(std::string_view name, const CallLimits& limit) override
  {
    const std::array parameters{Parameter{std::string(name)}};
    const auto rows = ask(read_sql, parameters, limit);
    if (!rows) {
      return rows.error();
    }
    if (rows->count() != 1) {
      return Error{ErrorCode::internal, m_connection.where() + " answered a read with no row"};
    }
    Snapshot state{.version = {}, .bytes = {}, .time_us = rows->number(0, 0), .listeners = {}};
    if (!rows->is_null(0, 1)) {
      state.version = std::to_string(rows->number(0, 1));
      state.bytes = rows->text(0, 2);
    }
    state.listeners = lines_of(rows->text(0, 3));
    return state;
  }

  Result<Commit> write_if(std::string_view name, const Version& version, const Change& change,
                          const CallLimits& limit) override
  {
    const std::string next = std::to_string(static_cast<std::int64_t>(m_rng->next()));
    Statement statement{.sql = version.empty() ? insert_sql : update_sql,
                        .parameters = {{.text = std::string(name)},
                                       {.text = next},
                                       {.text = std::string(change.bytes), .is_binary = true},
                                       {.text = change.face.holder, .is_null = change.face.holder.empty()},
                                       time_parameter(change.face.until_us),
                                       time_parameter(change.face.forget_us)}};
    if (!version.empty()) {
      statement.add(version);
    }
    add_log(statement, change.log);
    if (!change.messages.empty()) {
      add_messages(statement, change.messages);
      statement.sql += " select (select count(*) from n), x.* from (" + std::string(durable_sql) + ") x";
    } else {
      statement.sql += durable_sql;
    }
    const auto rows = m_connection.ask(statement.sql, statement.parameters, limit);
    if (!rows) {
      return m_connection.refusal() == Refusal::conflict ? Result<Commit>(Conflict{}) : rows.error();
    }
    if (rows->count() == 0) {
      return Commit{Conflict{}};
    }
    clean_now_and_then(limit);
    return Commit{Committed{next}};
  }

  Result<std::unique_ptr<MessageSource>> listen(std::span<const LockChannel> channels, const CallLimits& limit) override
  {
    auto source = std::make_unique<NotifiedSource>(m_spec, m_clock, std::make_unique<SystemRng>());
    const auto listening = source->listen(channels, limit);
    if (!listening) {
      return listening.error();
    }
    return std::unique_ptr<MessageSource>(std::move(source));
  }

  Result<std::vector<std::string>> events(std::string_view name, const CallLimits& limit) override
  {
    const std::array parameters{Parameter{std::string(name)}};
    return column(ask("select entry from rlock_event where name = $1 order by id", parameters, limit));
  }

  Result<std::vector<std::string>> list(std::string_view glob, Which which, const CallLimits& limit) override
  {
    auto names = column(ask(which == Which::held ? held_sql : with_events_sql, {}, limit));
    if (names) {
      const std::string pattern(glob);
      std::erase_if(*names, [&](const std::string& name) { return ::fnmatch(pattern.c_str(), name.c_str(), 0) != 0; });
    }
    return names;
  }

  Result<Done> erase(std::string_view name, const CallLimits& limit) override
  {
    const std::array parameters{Parameter{std::string(name)}};
    const auto erased = m_connection.ask(erase_sql, parameters, limit);
    return erased ? Result(Done{}) : Result<Done>(erased.error());
  }

  Result<std::vector<Finding>> check_server(const CallLimits& limit) override
  {
    return postgres::check_server(m_connection, m_spec, m_clock, limit);
  }

  void drop_connection() override { m_connection.drop(); }

 private:
  // Makes the tables where there are none. Two clients may do that at once; the one that fails asks again.
  Result<Rows> ask(const std::string& sql, std::span<const Parameter> parameters, const CallLimits& limit)
  {
    constexpr int most_tries = 3;
    auto rows = m_connection.ask(sql, parameters, limit);
    for (int tries = 0; !rows && m_connection.refusal() == Refusal::no_such_table && tries < most_tries; ++tries) {
      if (!m_spec.creates_tables) {
        return Error{ErrorCode::config, m_connection.where() +
                                            " has no table rlock_lock (leave out create=no once, or "
                                            "make the tables that rlock acl prints)"};
      }
      const auto made = m_connection.run(std::string(create_tables_sql), limit);
      if (!made && made.error().code == ErrorCode::refused) {
        return made.error();
      }
      rows = m_connection.ask(sql, parameters, limit);
    }
    return rows;
  }

  // The first column of all rows.
  static Result<std::vector<std::string>> column(const Result<Rows>& rows)
  {
    if (!rows) {
      return rows.error();
    }
    std::vector<std::string> values;
    values.reserve(static_cast<std::size_t>(rows->count()));
    for (int row = 0; row < rows->count(); ++row) {
      values.push_back(rows->text(row, 0));
    }
    return values;
  }

  // An error is not reported: a later commit cleans.
  void clean_now_and_then(const CallLimits& limit)
  {
    if (below(*m_rng, commits_per_cleaning) == 0) {
      [[maybe_unused]] const auto cleaned = m_connection.ask(forget_sql, {}, limit);
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
  return std::make_unique<PostgresBackend>(std::move(spec), clock, std::move(rng));
}

}  // namespace rlock::postgres
