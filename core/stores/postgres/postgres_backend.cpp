// SPDX-License-Identifier: Apache-2.0
#include "stores/postgres/postgres_backend.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>
#include "base/text.h"
#include "engine/cleaning.h"
#include "engine/missing_tables.h"
#include "engine/name_glob.h"
#include "engine/shared_table.h"
#include "stores/postgres/postgres_checks.h"
#include "stores/postgres/postgres_connection.h"
#include "stores/postgres/postgres_listener.h"
#include "stores/postgres/postgres_schema.h"

namespace rlock::postgres {
namespace {

using record::Backend;
using record::Change;
using record::Commit;
using record::Committed;
using record::Conflict;
using record::SharedVersion;
using record::Snapshot;
using record::Version;

// A commit that a crash of the server may lose would let two jobs run.
constexpr const char* durable_sql = R"(
select case when current_setting('synchronous_commit') = 'off' then set_config('synchronous_commit', 'on', true) end from w)";

constexpr const char* events_sql = "select entry from {event} where name = $1 order by id";
constexpr const char* events_of_each_sql = "select name, entry from {event} where name = any($1) order by name, id";
constexpr const char* with_events_sql = "select distinct name from {event} order by name";

constexpr const char* erase_sql = R"(
with l as (delete from {listener} where name = $1), e as (delete from {event} where name = $1)
delete from {lock} where name = $1)";

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

// Seconds since 1970, for to_timestamp; NULL for 0.
Parameter time_parameter(std::int64_t micros)
{
  const std::string fraction = std::to_string(micros % 1'000'000);
  return {.text = std::to_string(micros / 1'000'000) + "." + std::string(6 - fraction.size(), '0') + fraction,
          .is_null = micros == 0};
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
      entries.push_back(bytea_of(event.entry));
    }
    const std::string id_list = statement.add(array_of(ids));
    const std::string entry_list = statement.add(array_of(entries));
    statement.sql += ", e as (insert into {event} select w.name, t.id, t.entry from w, unnest(" + id_list +
                     "::bigint[], " + entry_list +
                     "::bytea[]) as t(id, entry) on conflict (name, id) do update set entry = excluded.entry)";
  }
  const std::string delete_of_lock = " as (delete from {event} x using w where x.name = w.name and x.id ";
  if (log.first_kept) {
    statement.sql += ", p" + delete_of_lock + "< " + statement.add(std::to_string(*log.first_kept)) + "::bigint)";
  }
  if (log.last_kept) {
    statement.sql += ", d" + delete_of_lock + "> " + statement.add(std::to_string(*log.last_kept)) + "::bigint)";
  }
}

// To the connections that listen, and into the inboxes of listeners that poll.
void add_messages(Statement& statement, std::span<const Message> messages)
{
  std::vector<std::string> channels;
  std::vector<std::string> notified;
  std::vector<std::string> texts;
  for (const Message& each : messages) {
    channels.push_back(each.channel);
    notified.push_back(notify_channel(each.channel));
    texts.push_back(each.channel + "\n" + each.text);
  }
  const std::string channel_list = statement.add(array_of(channels));
  const std::string notified_list = statement.add(array_of(notified));
  const std::string text_list = statement.add(array_of(texts));
  statement.sql += ", m as (select t.*, w.name from w, unnest(" + channel_list + "::text[], " + notified_list +
                   "::text[], " + text_list +
                   "::text[]) with ordinality as t(channel, notified, text, at)), "
                   "n as materialized (select pg_notify(m.notified, m.text) from m order by m.at), "
                   "i as (update {listener} l set inbox = l.inbox || s.texts from "
                   "(select name, channel, array_agg(text order by at) as texts from m group by name, channel) s "
                   "where l.name = s.name and l.channel = s.channel and l.until is not null)";
}

class PostgresBackend final : public Backend {
 public:
  PostgresBackend(ConnectionSpec spec, const Clock& clock, std::unique_ptr<Rng> rng)
      : m_spec(std::move(spec)),
        m_clock(clock),
        m_rng(std::move(rng)),
        m_tables(tables_for(m_spec.table)),
        m_read(read_sql(m_tables)),
        m_insert(insert_sql(m_tables)),
        m_update(update_sql(m_tables)),
        m_shared(std::make_shared<Connection>(m_spec, clock)),
        m_connection(*m_shared),
        m_listeners(m_shared, m_spec, m_tables, clock)
  {
  }

  Result<Snapshot> read(std::string_view name, const CallLimits& limit) override
  {
    const std::array parameters{Parameter{std::string(name)}};
    const bool asks_for_rights = std::exchange(m_asks_for_rights, false);
    ASSIGN_OR_RETURN(const auto rows, ask(asks_for_rights ? read_sql(m_tables, rights_columns_sql(m_tables)) : m_read,
                                          parameters, limit));
    const int columns = columns_of_read();
    constexpr int columns_of_rights = 2;
    if (rows.count() != 1 || rows.columns() != columns + (asks_for_rights ? columns_of_rights : 0)) {
      m_connection.drop();
      return Error{ErrorCode::internal, m_connection.where() + " answered nonsense (is it PostgreSQL?)"};
    }
    if (asks_for_rights) {
      if (const std::string missing = rows.text(0, columns); !missing.empty()) {
        return lacks(missing, rows.text(0, columns + 1));
      }
      m_has_rights = true;
    }
    return snapshot(rows, 0);
  }

  Result<record::StatesAndLogs> read_each(std::span<const std::string_view> names, bool with_logs,
                                          const CallLimits& limit) override
  {
    const std::array parameters{Parameter{array_of(std::vector<std::string>(names.begin(), names.end()))}};
    const auto rows = ask(read_each_sql(m_tables), parameters, limit);
    const auto entries = rows && with_logs
                             ? std::optional(ask(on_tables(events_of_each_sql, m_tables), parameters, limit))
                             : std::nullopt;
    if (!rows || (entries && !*entries)) {
      return rows ? entries->error() : rows.error();
    }
    record::StatesAndLogs states;
    const int name_column = columns_of_read();
    for (int row = 0; row < rows->count() && rows->columns() == name_column + 1; ++row) {
      if (auto state = snapshot(*rows, row)) {
        auto& known = states[rows->text(row, name_column)];
        known.state = *std::move(state);
        known.log = with_logs ? std::optional<std::vector<std::string>>(std::in_place) : std::nullopt;
      }
    }
    for (int row = 0; entries && row < (*entries)->count(); ++row) {
      if (const auto known = states.find((*entries)->text(row, 0)); known != states.end()) {
        known->second.log->push_back((*entries)->text(row, 1));
      }
    }
    return states;
  }

  Result<Commit> write_if(std::string_view name, const Version& version, const Change& change,
                          const CallLimits& limit) override
  {
    const std::string next = std::to_string(static_cast<std::int64_t>(m_rng->next()));
    Statement statement{.sql = version.empty() ? m_insert : m_update,
                        .parameters = {{.text = std::string(name)},
                                       {.text = next},
                                       {.text = std::string(change.bytes), .is_binary = true},
                                       {.text = change.face.holder, .is_null = change.face.holder.empty()},
                                       time_parameter(change.face.until_us)}};
    if (!m_tables.are_shared) {
      statement.parameters.push_back(time_parameter(change.face.forget_us));
    }
    if (!version.empty()) {
      add_version(statement, version);
    }
    add_log(statement, change.log);
    if (!change.messages.empty()) {
      add_messages(statement, change.messages);
      statement.sql += " select (select count(*) from n), x.* from (" + std::string(durable_sql) + ") x";
    } else {
      statement.sql += durable_sql;
    }
    const auto rows = ask(on_tables(statement.sql, m_tables), statement.parameters, limit);
    if (!rows) {
      return m_connection.refusal() == Refusal::conflict ? Result<Commit>(Conflict{}) : rows.error();
    }
    if (rows->count() == 0) {
      return Commit{Conflict{}};
    }
    if (record::must_clean(*m_rng, change)) {
      clean(limit);
    }
    return Commit{
        Committed{m_tables.are_shared ? SharedVersion{next, change.face.until_us, change.face.holder}.text() : next}};
  }

  Result<std::unique_ptr<MessageSource>> listen(std::span<const LockChannel> channels, const CallLimits& limit) override
  {
    return m_listeners.open(channels, limit);
  }

  Result<std::vector<std::string>> events(std::string_view name, const CallLimits& limit) override
  {
    const std::array parameters{Parameter{std::string(name)}};
    return column(ask(on_tables(events_sql, m_tables), parameters, limit));
  }

  Result<std::vector<std::string>> list(std::string_view glob, Which which, const CallLimits& limit) override
  {
    ASSIGN_OR_RETURN(
        auto names,
        column(ask(which == Which::held ? held_sql(m_tables) : on_tables(with_events_sql, m_tables), {}, limit)));
    record::keep_matching(names, glob);
    return names;
  }

  Result<Done> erase(std::string_view name, const CallLimits& limit) override
  {
    const std::array parameters{Parameter{std::string(name)}};
    RETURN_IF_ERROR(m_connection.ask(on_tables(erase_sql, m_tables), parameters, limit));
    return Done{};
  }

  void ask_for_rights() override { m_asks_for_rights = !m_has_rights; }

  Result<std::vector<Finding>> check_server(const CallLimits& limit) override
  {
    return postgres::check_server(m_connection, m_spec, m_tables, m_clock, limit);
  }

  [[nodiscard]] bool is_shared() const override { return m_tables.are_shared; }
  void drop_connection() override { m_connection.drop(); }

 private:
  enum ReadColumn { read_time, read_version, read_record, read_channels, read_end, read_holder, read_end_type };

  [[nodiscard]] int columns_of_read() const { return m_tables.are_shared ? read_end_type + 1 : read_channels + 1; }

  [[nodiscard]] Error lacks(const std::string& rights, const std::string& user) const
  {
    return {ErrorCode::refused, m_connection.where() + ": the user " + printable(user) + " lacks " + printable(rights) +
                                    " (run: " + printable(grant_sql(m_tables, user)) + ")"};
  }

  [[nodiscard]] Result<Snapshot> snapshot(const Rows& rows, int row) const
  {
    return m_tables.are_shared ? shared_snapshot(rows, row) : own_snapshot(rows, row);
  }

  static Snapshot own_snapshot(const Rows& rows, int row)
  {
    Snapshot state{.version = {}, .bytes = {}, .time_us = rows.number(row, read_time), .listeners = {}};
    if (!rows.is_null(row, read_version)) {
      state.version = std::to_string(rows.number(row, read_version));
      state.bytes = rows.text(row, read_record);
    }
    if (const std::string channels = rows.text(row, read_channels); !channels.empty()) {
      const auto lines = split(channels, '\n');
      state.listeners.assign(lines.begin(), lines.end());
    }
    return state;
  }

  // The version of a shared row is also its face, because the other program changes that alone.
  [[nodiscard]] Result<Snapshot> shared_snapshot(const Rows& rows, int row) const
  {
    if (const std::string type = rows.text(row, read_end_type); !keeps_milliseconds(type)) {
      return Error{ErrorCode::config, m_connection.where() + ": lock_until is a " + printable(type) +
                                          " (it must be a timestamp without time zone that keeps milliseconds)"};
    }
    Snapshot state = own_snapshot(rows, row);
    if (!state.version.empty()) {
      state.face = record::Face{.holder = rows.text(row, read_holder), .until_us = rows.number(row, read_end)};
      state.version = SharedVersion{state.version, state.face->until_us, state.face->holder}.text();
    }
    return state;
  }

  void add_version(Statement& statement, const Version& version) const
  {
    if (!m_tables.are_shared) {
      statement.add(version);
      return;
    }
    auto seen = SharedVersion::of(version);
    statement.add(std::move(seen.number));
    statement.add(std::to_string(seen.until_us));
    statement.add(std::move(seen.holder));
  }

  // Makes the tables where there are none.
  Result<Rows> ask(const std::string& sql, std::span<const Parameter> parameters, const CallLimits& limit)
  {
    return record::ask_with_tables(
        m_connection, m_spec, m_tables.are_shared, [&] { return m_connection.ask(sql, parameters, limit); },
        [&] { return make_tables(limit); });
  }

  Result<Rows> make_tables(const CallLimits& limit)
  {
    auto temporary = m_connection.run(makes_temporary_sql(m_tables), limit);
    if (temporary && temporary->text(0, 0) == "t") {
      return Error{ErrorCode::config, m_connection.where() + ": the tables that are missing " +
                                          std::string(would_be_temporary) + " (" + std::string(other_schema) + ")"};
    }
    return temporary ? m_connection.run(create_sql(m_tables), limit) : std::move(temporary);
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
  void clean(const CallLimits& limit)
  {
    [[maybe_unused]] const auto cleaned = m_connection.ask(forget_sql(m_tables), {}, limit);
  }

  ConnectionSpec m_spec;
  const Clock& m_clock;
  std::unique_ptr<Rng> m_rng;
  const Tables m_tables;
  const std::string m_read;
  bool m_asks_for_rights = false;  // with the next read
  bool m_has_rights = false;       // as a read has found
  const std::string m_insert;
  const std::string m_update;
  std::shared_ptr<Connection> m_shared;  // with the listeners
  Connection& m_connection;
  ListenerFactory m_listeners;
};

}  // namespace

std::unique_ptr<Backend> open_backend(ConnectionSpec spec, const Clock& clock, std::unique_ptr<Rng> rng)
{
  return std::make_unique<PostgresBackend>(std::move(spec), clock, std::move(rng));
}

}  // namespace rlock::postgres
