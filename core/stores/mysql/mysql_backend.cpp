// SPDX-License-Identifier: Apache-2.0
#include "stores/mysql/mysql_backend.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>
#include "base/defaults.h"
#include "base/text.h"
#include "engine/cleaning.h"
#include "engine/missing_tables.h"
#include "engine/name_glob.h"
#include "engine/shared_table.h"
#include "stores/mysql/mysql_checks.h"
#include "stores/mysql/mysql_connection.h"
#include "stores/mysql/mysql_listener.h"
#include "stores/mysql/mysql_schema.h"
#include "stores/mysql/mysql_statements.h"

namespace rlock::mysql {
namespace {

using record::Backend;
using record::Change;
using record::Commit;
using record::Committed;
using record::Conflict;
using record::SharedVersion;
using record::Snapshot;
using record::Version;

class MysqlBackend final : public Backend {
 public:
  MysqlBackend(ConnectionSpec spec, const Clock& clock, std::unique_ptr<Rng> rng)
      : m_spec(std::move(spec)),
        m_clock(clock),
        m_rng(std::move(rng)),
        m_tables(tables_for(m_spec.table)),
        m_connection(m_spec, clock)
  {
  }

  Result<Snapshot> read(std::string_view name, const CallLimits& limit) override
  {
    RETURN_IF_ERROR(check(name, limit));
    const bool asks_for_rights = std::exchange(m_asks_for_rights, false);
    auto answer = ask(read_sql(name, m_tables) + (asks_for_rights ? ";" + try_rights_sql(m_tables) : ""), limit);
    if (!answer) {
      return asks_for_rights && answer.error().code == ErrorCode::refused ? with_grants(answer.error(), limit)
                                                                          : answer.error();
    }
    m_has_rights = m_has_rights || asks_for_rights;
    Snapshot state{};
    for (Row& row : answer->back()) {
      if (row[read_channel]) {
        state.listeners.push_back(*std::move(row[read_channel]));
      } else if (row[read_time]) {
        if (!may_be_written(row[read_read_only].value_or(""))) {
          return m_connection.refuse_read_only();
        }
        state.time_us = leading_number(*row[read_time]);
        RETURN_IF_ERROR(take_state(name, row, state));
      }
    }
    if (state.time_us == 0) {
      return Error{ErrorCode::internal, m_connection.where() + " answered a read without its time"};
    }
    std::ranges::sort(state.listeners);
    return state;
  }

  // Left out are names that the table cannot have, or for which it has a lock of another name.
  Result<record::StatesAndLogs> read_each(std::span<const std::string_view> names, bool with_logs,
                                          const CallLimits& limit) override
  {
    std::vector<std::string_view> possible;
    std::ranges::copy_if(names, std::back_inserter(possible),
                         [&](std::string_view name) { return static_cast<bool>(check(name, limit)); });
    record::StatesAndLogs states;
    if (possible.empty()) {
      return states;
    }
    ASSIGN_OR_RETURN(auto answer, ask(read_each_sql(possible, with_logs, m_tables), limit));
    const Row& time = answer[each_time].front();
    if (!may_be_written(time[read_read_only].value_or(""))) {
      return m_connection.refuse_read_only();
    }
    for (const std::string_view name : possible) {
      auto& known = states[std::string(name)];
      known.state.time_us = leading_number(time[read_time].value_or(""));
      known.log = with_logs ? std::optional<std::vector<std::string>>(std::in_place) : std::nullopt;
    }
    const auto each_row = [&](EachSet set, auto take) {
      for (Row& row : answer[set]) {
        if (const auto known = states.find(row[0].value_or("")); known != states.end()) {
          take(row, known);
        }
      }
    };
    each_row(each_listener, [](Row& row, auto known) {
      known->second.state.listeners.push_back(std::move(row[1]).value_or(""));
      std::ranges::sort(known->second.state.listeners);
    });
    if (with_logs) {
      each_row(each_entry, [](Row& row, auto known) { known->second.log->push_back(std::move(row[1]).value_or("")); });
    }
    each_row(each_state, [&](Row& row, auto known) {
      [[maybe_unused]] const auto taken = take_state(known->first, row, known->second.state);
    });
    if (m_tables.are_shared) {  // the row may be there by another name
      std::erase_if(states, [](const auto& each) { return each.second.state.version.empty(); });
    }
    return states;
  }

  Result<Commit> write_if(std::string_view name, const Version& version, const Change& change,
                          const CallLimits& limit) override
  {
    const std::string next = std::to_string(static_cast<std::int64_t>(m_rng->next()));
    const auto answer = m_connection.ask(commit_sql(name, version, next, change, m_tables), limit);
    if (!answer) {
      m_connection.drop();
      switch (m_connection.refusal()) {
        case Refusal::conflict: return Commit{Conflict{}};
        case Refusal::too_large: return Commit{record::TooLarge{answer.error()}};
        default: return answer.error();
      }
    }
    if (answer->front().front()[0] != "1") {
      return Commit{Conflict{}};
    }
    if (!change.messages.empty()) {
      wake(answer->back(), limit);
    }
    if (record::must_clean(*m_rng, change)) {
      clean(limit);
    }
    return Commit{
        Committed{m_tables.are_shared ? SharedVersion{next, change.face.until_us, change.face.holder}.text() : next}};
  }

  Result<std::unique_ptr<MessageSource>> listen(std::span<const LockChannel> channels, const CallLimits& limit) override
  {
    auto source = std::make_unique<PollingSource>(m_spec, m_clock, std::make_unique<SystemRng>());
    RETURN_IF_ERROR(source->begin(channels, limit));
    return std::unique_ptr<MessageSource>(std::move(source));
  }

  Result<std::vector<std::string>> events(std::string_view name, const CallLimits& limit) override
  {
    return column(ask("select entry from {event} where name = " + sql_text(name) + " order by id", limit));
  }

  Result<std::vector<std::string>> list(std::string_view glob, Which which, const CallLimits& limit) override
  {
    ASSIGN_OR_RETURN(auto names, column(ask(which == Which::held ? held_sql(m_tables)
                                                                 : "select distinct name from {event} order by name",
                                            limit)));
    record::keep_matching(names, glob);
    return names;
  }

  Result<Done> erase(std::string_view name, const CallLimits& limit) override
  {
    RETURN_IF_ERROR(m_connection.ask(erase_sql(name), limit));
    return Done{};
  }

  void ask_for_rights() override { m_asks_for_rights = !m_has_rights; }

  Result<std::vector<Finding>> check_server(const CallLimits& limit) override
  {
    return mysql::check_server(m_connection, m_spec, m_tables, m_clock, limit);
  }

  [[nodiscard]] bool is_shared() const override { return m_tables.are_shared; }
  void drop_connection() override { m_connection.drop(); }

 private:
  // The refusal with the GRANT that is missing, to the user as the server knows it. A table that cannot be made has none.
  Error with_grants(Error refused, const CallLimits& limit)
  {
    if (m_cannot_make_tables) {
      return refused;
    }
    const auto self = m_connection.ask("select current_user()", limit);
    const std::string user = self && !self->front().empty() ? self->front()[0][0].value_or("") : "";
    const std::string grants = user.empty() ? "" : grants_for(refused.text, m_tables, user);
    refused.text += grants.empty() ? "" : ": " + printable(grants);
    return refused;
  }

  // MySQL compares without spaces at the end, also in this collation.
  Result<Done> check(std::string_view name, const CallLimits& limit)
  {
    if (m_tables.are_shared && !m_is_layout_checked) {
      RETURN_IF_ERROR(check_layout(limit));
    }
    const auto characters = static_cast<std::size_t>(std::ranges::count_if(name, begins_character));
    if (characters > m_longest_name) {
      return Error{ErrorCode::config, m_spec.url + ": the name of a lock has at most " +
                                          std::to_string(m_longest_name) + " characters there"};
    }
    if (name.ends_with(' ')) {
      return Error{ErrorCode::config, m_spec.url + ": the name of a lock cannot end with a space there"};
    }
    return Done{};
  }

  // Of ShedLock's table. What is missing is found by the statement that needs it.
  Result<Done> check_layout(const CallLimits& limit)
  {
    ASSIGN_OR_RETURN(const auto answer, m_connection.ask(columns_sql, limit));
    const TableLayout layout = layout_in(answer, m_tables);
    if (layout.columns.empty()) {
      return Done{};
    }
    if (const Finding unfit = shared_columns(layout); unfit.status == CheckStatus::fail) {
      return Error{ErrorCode::config, m_connection.where() + ": " + unfit.found + " (" + unfit.advice + ")"};
    }
    m_longest_name = longest_name_in(layout);
    m_is_layout_checked = true;
    return Done{};
  }

  Result<Done> take_state(std::string_view name, Row& row, Snapshot& state) const
  {
    state.version = row[read_version].value_or("");
    state.bytes = std::move(row[read_record]).value_or("");
    return m_tables.are_shared ? add_face(name, row, state) : Done{};
  }

  // Of a row of ShedLock. Its collation may find it by another name.
  Result<Done> add_face(std::string_view name, const Row& row, Snapshot& state) const
  {
    if (!row[read_name]) {
      return Done{};
    }
    if (*row[read_name] != name) {
      return Error{ErrorCode::config, m_connection.where() + " takes the lock " + printable(name) + " for the lock " +
                                          printable(*row[read_name]) + " (use that name)"};
    }
    state.face =
        record::Face{.holder = row[read_holder].value_or(""), .until_us = leading_number(row[read_end].value_or(""))};
    state.version = SharedVersion{state.version, state.face->until_us, state.face->holder}.text();
    return Done{};
  }

  // Makes the tables where there are none.
  Result<Answer> ask(const std::string& sql, const CallLimits& limit)
  {
    return record::ask_with_tables(
        m_connection, m_spec, m_tables.are_shared, [&] { return m_connection.ask(sql, limit); },
        [&] { return make_tables(limit); });
  }

  // A statement that makes a table cannot be taken back: no table is made beside one of another program. The layout of a shared one
  // has been checked.
  Result<Answer> make_tables(const CallLimits& limit)
  {
    if (!m_tables.are_shared) {
      ASSIGN_OR_RETURN(
          const auto found,
          m_connection.ask(
              "select count(*), coalesce(sum(column_name in ('name', 'version', 'record', 'locked_by', 'lock_until', "
              "'forget_at')), 0) from information_schema.columns where table_schema = {schema} and table_name = "
              "{lock_name}",
              limit));
      constexpr std::int64_t own_columns = 6;
      const Row& counts = found.front().front();
      if (leading_number(counts[0].value_or("")) > 0 && leading_number(counts[1].value_or("")) < own_columns) {
        return Error{ErrorCode::config, m_connection.where() + ": the table " + m_tables.lock +
                                            " is there, and is not rlock's (use another database)"};
      }
    }
    auto made = m_connection.ask(create_sql(m_tables), limit);
    m_cannot_make_tables = !made;
    return made;
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

  // A listener that cannot be woken finds its message with its next poll. Behind one of another user there may be one of this user.
  void wake(const Rows& listeners, const CallLimits& limit)
  {
    for (const Row& each : listeners) {
      const auto woken = m_connection.ask(wake_sql(each[0].value_or("0")), limit);
      if (!woken && m_connection.refusal() != Refusal::not_killed) {
        return;
      }
    }
  }

  // An error is not reported: a later commit cleans.
  void clean(const CallLimits& limit)
  {
    [[maybe_unused]] const auto cleaned = m_connection.ask(forget_sql(m_tables), limit);
  }

  ConnectionSpec m_spec;
  const Clock& m_clock;
  std::unique_ptr<Rng> m_rng;
  const Tables m_tables;
  std::size_t m_longest_name = m_tables.are_shared ? longest_shared_name : longest_name;
  bool m_is_layout_checked = false;
  bool m_asks_for_rights = false;     // with the next read
  bool m_cannot_make_tables = false;  // as of the last attempt
  bool m_has_rights = false;          // as a read has found
  Connection m_connection;
};

}  // namespace

std::unique_ptr<Backend> open_backend(ConnectionSpec spec, const Clock& clock, std::unique_ptr<Rng> rng)
{
  return std::make_unique<MysqlBackend>(std::move(spec), clock, std::move(rng));
}

}  // namespace rlock::mysql
