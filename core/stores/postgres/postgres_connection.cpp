// SPDX-License-Identifier: Apache-2.0
#include "stores/postgres/postgres_connection.h"

#include <fcntl.h>
#include <poll.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <vector>
#include "base/fd.h"
#include "base/in_turn.h"
#include "base/text.h"
#include "base/wait.h"

namespace rlock::postgres {
namespace {

constexpr std::size_t most_heard = 10'000;  // notifications that no listener has taken yet

// The first line of a message of libpq.
std::string line_of(const char* message)
{
  const std::string_view text = message == nullptr ? "" : message;
  return printable(text.substr(0, text.find('\n')));
}

// The text of libpq, which speaks English because rlock sets no locale, or that of the server.
bool is_about_client_certificate(std::string_view text)
{
  const auto has = [&](std::string_view part) { return text.find(part) != std::string_view::npos; };
  return has("requires a valid client certificate") ||
         (has(" alert ") && (has("certificate") || has("unknown ca")));  // sent by the server
}

// What a connection that failed means, by a part of the text.
struct TextRow {
  std::string_view part;
  ErrorCode code;
  std::string_view advice;
  std::string_view then = {};  // stands behind `part`

  [[nodiscard]] bool is_in(std::string_view text) const
  {
    const auto at = text.find(part);
    return at != std::string_view::npos && text.find(then, at) != std::string_view::npos;
  }
};
constexpr std::string_view check_password =
    " (check the URL, RLOCK_PASSWORD, RLOCK_PASSWORD_FILE, --password-file, PGPASSWORD or ~/.pgpass)";
constexpr std::string_view no_database = " (create the database, or name another one)";
constexpr auto failures = std::to_array<TextRow>({
    {"authentication failed", ErrorCode::refused, check_password},
    {"no pg_hba.conf entry", ErrorCode::refused, " (add a line for this user, database and host there)"},
    {"pg_hba.conf rejects", ErrorCode::refused, " (change its line for this user, database and host)"},
    {"role \"", ErrorCode::refused, " (create the user, or name another one)", "\" does not exist"},
    {"role \"", ErrorCode::refused, " (name a user that may log in)", "is not permitted to log in"},
    {"permission denied for database", ErrorCode::refused, " (grant connect on it)"},
    {"database \"", ErrorCode::config, no_database, "\" does not exist"},
    {"no such database", ErrorCode::config, no_database},  // PgBouncer
    {"session is read-only", ErrorCode::server_not_ready, name_the_primary},
    {"server is in hot standby mode", ErrorCode::server_not_ready, name_the_primary},
    {"too many clients already", ErrorCode::unreachable, " (raise max_connections, or end other clients)"},
    {"remaining connection slots are reserved", ErrorCode::unreachable,
     " (raise max_connections, or end other clients)"},
    {"too many connections for", ErrorCode::unreachable, " (raise its limit, or end other clients)"},
    {"could not match", ErrorCode::config, ""},  // so many hosts and so many ports
    {"definition of service", ErrorCode::config, ""},
    {"service file", ErrorCode::config, ""},
    {"root certificate file", ErrorCode::config, ""},
    {"certificate file", ErrorCode::config, ""},
    {"private key file", ErrorCode::config, ""},
    {"sslmode value", ErrorCode::config, ""},
    {"weak sslmode", ErrorCode::config, ""},
    {"Connection refused", ErrorCode::unreachable, is_it_running},
    {"No such file or directory", ErrorCode::unreachable, is_it_running},  // of a socket
    {"could not translate host name", ErrorCode::unreachable, " (-S names another server)"},
});

// libpq refuses a value: it begins such a text with these words, and that of a server with the name of the server.
constexpr std::string_view bad_value = "invalid ";

// An answer that has begun to arrive in time may be read for so much longer.
constexpr Millis beyond_deadline{50};

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
    ++m_generation;
    m_has_old_answers = false;
    m_heard.clear();
  }
}

Result<Done> Connection::wait(int events, Instant since, const CallLimits& limit)
{
  switch (wait_for(fd(), static_cast<short>(events), *m_clock, limit)) {
    case Waited::ready: return Done{};
    case Waited::stopped: return interrupted();
    case Waited::late: break;
  }
  return too_late(since, limit);
}

Error Connection::too_late(Instant since, const CallLimits& limit)
{
  drop();
  return no_answer_in_time(m_spec.url + " did not answer within " + elapsed(*m_clock, since, limit));
}

// The statements of rlock need it.
Result<Done> Connection::check_version()
{
  const int version = m_pq->PQserverVersion(m_pg);
  if (version >= oldest_version) {
    return Done{};
  }
  drop();
  constexpr int major = 10'000;  // before PostgreSQL 10 a major version had two numbers
  const std::string shown =
      std::to_string(version / major) + (version < 10 * major ? "." + std::to_string(version / 100 % 100) : "");
  return Error{ErrorCode::server_not_ready,
               m_spec.url + ": PostgreSQL " + shown + " is too old (rlock needs PostgreSQL 12 or later)"};
}

// libpq has no SQLSTATE of a connection that failed, and its text may be in any language.
Error Connection::not_connected()
{
  const std::string text = line_of(m_pq->PQerrorMessage(m_pg));
  const bool needs_password = m_pq->PQconnectionNeedsPassword(m_pg) != 0;
  const bool is_about_certificate = is_about_client_certificate(text);
  drop();
  if (!Fd(::open("/", O_RDONLY | O_CLOEXEC))) {
    return {ErrorCode::os, "cannot connect to " + m_spec.url + ": " + os_text(errno) + " (raise ulimit -n)"};
  }
  const std::string said = "cannot connect to " + m_spec.url + ": " + text;
  if (needs_password || is_about_certificate) {
    return {ErrorCode::refused, said + std::string(needs_password ? check_password : std::string_view{})};
  }
  if (text.starts_with(bad_value)) {
    return {ErrorCode::config, said};
  }
  const auto* const row = std::ranges::find_if(failures, [&](const TextRow& each) { return each.is_in(text); });
  Error error = unreachable(said, row == failures.end() ? std::string_view() : row->advice);
  error.code = row == failures.end() ? ErrorCode::unreachable : row->code;
  return error;
}

// Each host gets its part of the time that is left: libpq itself would wait for one that answers nothing until the kernel gives up.
Result<Done> Connection::connect(const CallLimits& limit)
{
  ASSIGN_OR_RETURN(const auto library, libpq());
  m_pq = library;
  if (m_spec.hosts.empty()) {
    return connect_to({}, limit);
  }
  return in_turn(m_spec.hosts, *m_clock, limit,
                 [this](const Host& host, const CallLimits& share) { return connect_to(host, share); });
}

Result<Done> Connection::connect_to(const Host& host, const CallLimits& limit)
{
  std::vector<const char*> names{"dbname", "fallback_application_name", "client_encoding"};
  std::vector<const char*> values{m_spec.url.c_str(), "rlock", "UTF8"};
  const auto set = [&](const char* name, const std::string& value) {
    if (!value.empty()) {
      names.push_back(name);
      values.push_back(value.c_str());
    }
  };
  const bool is_any_session = m_spec.url.find("target_session_attrs=") != std::string::npos;
  const std::string attributes = is_any_session ? "" : "read-write";
  const std::string sslmode = m_spec.verifies_tls ? "verify-full" : "";
  set("host", host.name);
  set("hostaddr", host.address);
  set("port", host.port);
  set("user", m_spec.user);
  set("password", m_spec.password);
  set("target_session_attrs", attributes);
  set("sslmode", sslmode);
  names.push_back(nullptr);
  values.push_back(nullptr);
  const Instant start = m_clock->now();
  m_pg = m_pq->PQconnectStartParams(names.data(), values.data(), 1);
  if (m_pg == nullptr) {
    return Error{ErrorCode::os, "no memory for a connection to PostgreSQL"};
  }
  ++m_generation;
  m_pq->PQsetNoticeReceiver(
      m_pg, [](void*, const PGresult*) {}, nullptr);  // the default one writes to standard error
  for (auto state = PGRES_POLLING_WRITING; state != PGRES_POLLING_OK; state = m_pq->PQconnectPoll(m_pg)) {
    if (m_pq->PQstatus(m_pg) == CONNECTION_BAD || state == PGRES_POLLING_FAILED) {
      return not_connected();
    }
    if (m_clock->now() > limit.deadline + beyond_deadline) {
      return too_late(start, limit);  // from a server that sends without an end
    }
    if (const auto ready = wait(state == PGRES_POLLING_READING ? POLLIN : POLLOUT, start, limit); !ready) {
      drop();
      return ready;
    }
  }
  m_pq->PQsetnonblocking(m_pg, 1);
  return check_version();
}

Error Connection::lost()
{
  const std::string text = line_of(m_pq->PQerrorMessage(m_pg));
  drop();
  if (text.starts_with("lost synchronization with server") || text.starts_with("message contents do not agree")) {
    return {ErrorCode::internal, m_spec.url + " answered nonsense (is it PostgreSQL?): " + text};
  }
  return {
      .code = ErrorCode::unreachable, .text = "lost the connection to " + m_spec.url + ": " + text, .was_there = true};
}

Error Connection::refused(const PGresult* answer)
{
  const char* const field = m_pq->PQresultErrorField(answer, PG_DIAG_SQLSTATE);
  const std::string_view state = field == nullptr ? "" : field;
  const std::string text = m_spec.url + ": " + line_of(m_pq->PQresultErrorField(answer, PG_DIAG_MESSAGE_PRIMARY));
  const char* const file = m_pq->PQresultErrorField(answer, PG_DIAG_SOURCE_FILE);
  const StateRow& row = meaning_of(state, file == nullptr ? "" : file);
  m_refusal = row.refusal;
  const bool is_over = ends_connection(state);
  if (is_over) {
    drop();
  }
  return {.code = row.code, .text = text + std::string(row.advice), .was_there = is_over};
}

Result<Rows> Connection::answer(Instant since, const CallLimits& limit)
{
  std::optional<Rows> rows;
  std::optional<Error> error;
  m_has_old_answers = true;
  for (;;) {
    const int left = m_pq->PQflush(m_pg);
    if (left < 0) {
      return lost();
    }
    if (left == 1 || m_pq->PQisBusy(m_pg) != 0) {
      if (m_clock->now() > limit.deadline + beyond_deadline) {
        return too_late(since, limit);  // from a server that sends messages without an end
      }
      RETURN_IF_ERROR(wait(left == 1 ? POLLOUT | POLLIN : POLLIN, since, limit));
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
  m_has_old_answers = false;
  keep_notifications();
  if (error) {
    return *error;
  }
  return rows ? Result(*std::move(rows)) : lost();
}

// Reads the answers to requests that the caller no longer waits for. A refusal among them is not reported.
Result<Done> Connection::read_old_answers(Instant since, const CallLimits& limit)
{
  const auto old = answer(since, limit);
  if (m_pg == nullptr || m_has_old_answers) {
    return old.error();
  }
  m_refusal = Refusal::none;
  return Done{};
}

Result<Done> Connection::begin(Instant since, const CallLimits& limit)
{
  m_refusal = Refusal::none;
  if (m_pg == nullptr) {
    return connect(limit);
  }
  return m_has_old_answers ? read_old_answers(since, limit) : Result(Done{});
}

void Connection::send_ahead(const std::string& sql)
{
  if (m_pg == nullptr || m_has_old_answers) {
    return;
  }
  m_has_old_answers = m_pq->PQsendQuery(m_pg, sql.c_str()) != 0;
  [[maybe_unused]] const int left = m_pq->PQflush(m_pg);  // the next request sends the rest
}

Result<Rows> Connection::ask(const std::string& sql, std::span<const Parameter> parameters, const CallLimits& limit)
{
  const Instant start = m_clock->now();
  RETURN_IF_ERROR(begin(start, limit));
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
  RETURN_IF_ERROR(begin(start, limit));
  return m_pq->PQsendQuery(m_pg, sql.c_str()) == 0 ? Result<Rows>(lost()) : answer(start, limit);
}

void Connection::keep_notifications()
{
  while (PGnotify* const heard = m_pq->PQnotifies(m_pg)) {
    if (m_heard.size() == most_heard) {
      m_heard.pop_front();
    }
    m_heard.emplace_back(heard->extra);
    m_pq->PQfreemem(heard);
  }
}

std::optional<std::string> Connection::kept_notification(const Wanted& is_wanted)
{
  keep_notifications();
  const auto first = std::ranges::find_if(m_heard, is_wanted);
  if (first == m_heard.end()) {
    return std::nullopt;
  }
  std::optional<std::string> taken = std::move(*first);
  m_heard.erase(first);
  return taken;
}

Result<std::optional<std::string>> Connection::next_notification(const Wanted& is_wanted, const CallLimits& limit)
{
  for (bool is_last = false;;) {
    if (m_pg == nullptr) {
      return Error{ErrorCode::unreachable, "lost the connection to " + m_spec.url + " that listens"};
    }
    if (auto heard = kept_notification(is_wanted); heard || is_last) {
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
