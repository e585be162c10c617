// SPDX-License-Identifier: Apache-2.0
#include "store/postgres/postgres_connection.h"

#include <fcntl.h>
#include <poll.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <vector>
#include "base/fd.h"
#include "base/text.h"
#include "base/wait.h"

namespace rlock::postgres {
namespace {

// The first line of a message of libpq.
std::string line_of(const char* message)
{
  const std::string_view text = message == nullptr ? "" : message;
  return printable(text.substr(0, text.find('\n')));
}

// What an SQLSTATE means to a lock client (PostgreSQL's manual, appendix A). The longest beginning that fits counts.
struct StateRow {
  std::string_view state;
  ErrorCode code;
  Refusal refusal;
  std::string_view advice;
};
constexpr auto states = std::to_array<StateRow>({
    {"42P01", ErrorCode::config, Refusal::no_such_table, ""},
    {"3F000", ErrorCode::config, Refusal::other, " (create the schema, or set search_path)"},
    {"42501", ErrorCode::refused, Refusal::other, " (rlock acl prints the GRANT that rlock needs)"},
    {"42703", ErrorCode::config, Refusal::other,
     ": a table of this name is not rlock's (use another schema or database)"},
    {"40001", ErrorCode::server_not_ready, Refusal::conflict, ""},
    {"40P01", ErrorCode::server_not_ready, Refusal::conflict, ""},
    {"54000", ErrorCode::config, Refusal::other, " (the name of the lock is too long)"},
    {"22021", ErrorCode::config, Refusal::other, " (the name of the lock is no text of the database's encoding)"},
    {"25006", ErrorCode::server_not_ready, Refusal::other, " (name the primary server)"},
    {"28", ErrorCode::refused, Refusal::other, ""},
    {"53", ErrorCode::server_not_ready, Refusal::other, ""},
    {"57", ErrorCode::server_not_ready, Refusal::other, ""},
    {"08", ErrorCode::unreachable, Refusal::other, ""},
    {"42", ErrorCode::config, Refusal::other, ""},
});

}  // namespace

std::int64_t Rows::number(int row, int column) const
{
  std::uint64_t value = 0;
  for (const char byte : text(row, column)) {
    value = value << 8 | static_cast<unsigned char>(byte);
  }
  return static_cast<std::int64_t>(value);
}

void Connection::drop()
{
  if (m_pg != nullptr) {
    m_pq->PQfinish(m_pg);
    m_pg = nullptr;
  }
}

Result<Done> Connection::wait(int events, Instant since, const CallLimits& limit)
{
  switch (wait_for(fd(), static_cast<short>(events), *m_clock, limit)) {
    case Waited::ready: return Done{};
    case Waited::stopped: drop(); return interrupted();
    case Waited::late: break;
  }
  drop();
  return Error{ErrorCode::unreachable,
               m_spec.url + " did not answer within " + elapsed(*m_clock, since, limit) + raise_timeout};
}

// libpq has no SQLSTATE of a connection that failed, and its text may be in any language.
Error Connection::not_connected()
{
  const std::string text = line_of(m_pq->PQerrorMessage(m_pg));
  const bool is_login = m_pq->PQconnectionNeedsPassword(m_pg) != 0 ||
                        text.find("authentication failed") != std::string::npos ||
                        text.find("no pg_hba.conf entry") != std::string::npos;
  drop();
  if (!Fd(::open("/", O_RDONLY | O_CLOEXEC))) {
    return {ErrorCode::os, "cannot connect to " + m_spec.url + ": " + os_text(errno) + " (raise ulimit -n)"};
  }
  return {is_login ? ErrorCode::refused : ErrorCode::unreachable, "cannot connect to " + m_spec.url + ": " + text};
}

Result<Done> Connection::connect(const CallLimits& limit)
{
  const auto library = libpq();
  if (!library) {
    return library.error();
  }
  m_pq = *library;
  std::vector<const char*> names{"dbname", "fallback_application_name", "client_encoding"};
  std::vector<const char*> values{m_spec.url.c_str(), "rlock", "UTF8"};
  if (!m_spec.user.empty()) {
    names.push_back("user");
    values.push_back(m_spec.user.c_str());
  }
  if (!m_spec.password.empty()) {
    names.push_back("password");
    values.push_back(m_spec.password.c_str());
  }
  if (m_spec.url.find("target_session_attrs=") == std::string::npos) {
    names.push_back("target_session_attrs");
    values.push_back("read-write");
  }
  if (m_spec.verifies_tls) {
    names.push_back("sslmode");
    values.push_back("verify-full");
  }
  names.push_back(nullptr);
  values.push_back(nullptr);
  const Instant start = m_clock->now();
  m_pg = m_pq->PQconnectStartParams(names.data(), values.data(), 1);
  if (m_pg == nullptr) {
    return Error{ErrorCode::os, "no memory for a connection to PostgreSQL"};
  }
  for (auto state = PGRES_POLLING_WRITING; state != PGRES_POLLING_OK; state = m_pq->PQconnectPoll(m_pg)) {
    if (m_pq->PQstatus(m_pg) == CONNECTION_BAD || state == PGRES_POLLING_FAILED) {
      return not_connected();
    }
    if (const auto ready = wait(state == PGRES_POLLING_READING ? POLLIN : POLLOUT, start, limit); !ready) {
      return ready;
    }
  }
  m_pq->PQsetnonblocking(m_pg, 1);
  return Done{};
}

Error Connection::lost()
{
  const std::string text = line_of(m_pq->PQerrorMessage(m_pg));
  drop();
  return {
      .code = ErrorCode::unreachable, .text = "lost the connection to " + m_spec.url + ": " + text, .was_there = true};
}

Error Connection::refused(const PGresult* answer)
{
  const char* const field = m_pq->PQresultErrorField(answer, PG_DIAG_SQLSTATE);
  const std::string_view state = field == nullptr ? "" : field;
  const std::string text = m_spec.url + ": " + line_of(m_pq->PQresultErrorField(answer, PG_DIAG_MESSAGE_PRIMARY));
  const auto row =
      std::find_if(states.begin(), states.end(), [&](const StateRow& each) { return state.starts_with(each.state); });
  m_refusal = row == states.end() ? Refusal::other : row->refusal;
  const Error error{row == states.end() ? ErrorCode::internal : row->code,
                    text + std::string(row == states.end() ? "" : row->advice)};
  if (state.starts_with("57") || state.starts_with("08")) {  // the server ends the connection
    drop();
  }
  return error;
}

Result<Rows> Connection::answer(Instant since, const CallLimits& limit)
{
  std::optional<Rows> rows;
  std::optional<Error> error;
  for (;;) {
    const int left = m_pq->PQflush(m_pg);
    if (left < 0) {
      return lost();
    }
    if (left == 1 || m_pq->PQisBusy(m_pg) != 0) {
      if (const auto ready = wait(left == 1 ? POLLOUT | POLLIN : POLLIN, since, limit); !ready) {
        return ready.error();
      }
      if (m_pq->PQconsumeInput(m_pg) == 0) {
        return lost();
      }
      continue;
    }
    PGresult* const next = m_pq->PQgetResult(m_pg);
    if (next == nullptr) {
      break;
    }
    Rows part(next, *m_pq);
    const auto status = m_pq->PQresultStatus(next);
    if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK) {
      error = error ? error : refused(next);
      if (m_pg == nullptr) {
        return *error;
      }
    }
    rows.emplace(std::move(part));
  }
  if (error) {
    return *error;
  }
  return rows ? Result(*std::move(rows)) : lost();
}

Result<Done> Connection::begin(const CallLimits& limit)
{
  m_refusal = Refusal::none;
  return m_pg == nullptr ? connect(limit) : Result(Done{});
}

Result<Rows> Connection::ask(const std::string& sql, std::span<const Parameter> parameters, const CallLimits& limit)
{
  const Instant start = m_clock->now();
  if (const auto ready = begin(limit); !ready) {
    return ready.error();
  }
  std::vector<const char*> values;
  std::vector<int> lengths;
  std::vector<int> formats;
  for (const Parameter& each : parameters) {
    values.push_back(each.is_null ? nullptr : each.text.c_str());
    lengths.push_back(static_cast<int>(each.text.size()));
    formats.push_back(each.is_binary ? 1 : 0);
  }
  constexpr int binary = 1;
  const int sent = m_pq->PQsendQueryParams(m_pg, sql.c_str(), static_cast<int>(values.size()), nullptr, values.data(),
                                           lengths.data(), formats.data(), binary);
  return sent == 0 ? Result<Rows>(lost()) : answer(start, limit);
}

Result<Rows> Connection::run(const std::string& sql, const CallLimits& limit)
{
  const Instant start = m_clock->now();
  if (const auto ready = begin(limit); !ready) {
    return ready.error();
  }
  return m_pq->PQsendQuery(m_pg, sql.c_str()) == 0 ? Result<Rows>(lost()) : answer(start, limit);
}

std::optional<std::string> Connection::buffered_notification()
{
  PGnotify* const heard = m_pq->PQnotifies(m_pg);
  if (heard == nullptr) {
    return std::nullopt;
  }
  std::string text = heard->extra;
  m_pq->PQfreemem(heard);
  return text;
}

Result<std::optional<std::string>> Connection::next_notification(const CallLimits& limit)
{
  for (bool is_last = false;;) {
    if (m_pg == nullptr) {
      return Error{ErrorCode::unreachable, "lost the connection to " + m_spec.url + " that listens"};
    }
    if (auto heard = buffered_notification(); heard || is_last) {
      return heard;
    }
    const Waited waited = wait_for(fd(), POLLIN, *m_clock, limit);
    if (waited == Waited::stopped) {
      return interrupted();
    }
    is_last = waited == Waited::late;
    if (m_pq->PQconsumeInput(m_pg) == 0) {
      return lost();
    }
  }
}

}  // namespace rlock::postgres
