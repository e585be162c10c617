// SPDX-License-Identifier: Apache-2.0
#include "stores/mysql/mysql_connection.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <utility>
#include "base/broken_pipe.h"
#include "base/hex.h"
#include "base/in_turn.h"
#include "base/text.h"
#include "base/wait.h"
#include "stores/mysql/mysql_errors.h"

namespace rlock::mysql {
namespace {

// While libmariadb works: its first use makes the process ignore SIGPIPE, which the job would inherit.
class WithoutPipeSignal {
 public:
  WithoutPipeSignal() { ::sigaction(SIGPIPE, nullptr, &m_action); }
  ~WithoutPipeSignal() { ::sigaction(SIGPIPE, &m_action, nullptr); }
  WithoutPipeSignal(const WithoutPipeSignal&) = delete;
  WithoutPipeSignal& operator=(const WithoutPipeSignal&) = delete;

 private:
  WithoutBrokenPipe m_blocked;
  struct sigaction m_action = {};
};

const char* or_null(const std::string& text) { return text.empty() ? nullptr : text.c_str(); }

short poll_events(int awaited)
{
  return static_cast<short>(((awaited & MYSQL_WAIT_READ) != 0 ? POLLIN : 0) |
                            ((awaited & MYSQL_WAIT_WRITE) != 0 ? POLLOUT : 0) |
                            ((awaited & MYSQL_WAIT_EXCEPT) != 0 ? POLLPRI : 0));
}

// What is cut silently elsewhere, and a table of another engine, is an error; a row lock that is not free is a conflict, not a reason
// to wait for long. A COMMIT ends the transaction alone, an answer has all its rows, an index of unique values is one, and the deadline
// of a statement is rlock's. MariaDB ends a connection that leaves a transaction open. On a node of Galera a read waits for what other
// nodes have committed; MariaDB may be built without that variable, and MySQL has no handler outside of a procedure: it executes
// "do 0" instead, because it refuses a statement that is only a comment, and MariaDB skips versions of MySQL from 5.7. The last
// statement tells whether the server is read-only, also for users who may write nevertheless.
constexpr const char* session_sql =
    "set session completion_type = 0, sql_mode = 'STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION', autocommit = 1, "
    "time_zone = '+00:00', innodb_lock_wait_timeout = 2, sql_safe_updates = 0, sql_big_selects = 1, "
    "sql_select_limit = 18446744073709551615, unique_checks = 1"
    "/*M!100300 , idle_transaction_timeout = 2, max_statement_time = 0 *//*!50708 , max_execution_time = 0 */;"
    "set names utf8mb4 collate utf8mb4_bin;"
    "set session transaction isolation level read committed;"
    "/*M!100500 begin not atomic declare continue handler for 1193 begin end;"
    "execute immediate 'set session wsrep_sync_wait = 1'; end*//*!50700 do 0*/;"
    "select @@global.read_only, @@session.max_allowed_packet";

// libmariadb waits within read(2) in the handshake of TLS, where no signal ends the wait: its time to connect bounds that.
unsigned seconds_until(Instant deadline, Instant now)
{
  return static_cast<unsigned>(
      std::max<std::int64_t>(std::chrono::ceil<std::chrono::seconds>(deadline - now).count(), 1));
}

// libmariadb runs on a stack of its own; its default of 60 KB is little for TLS and the lookup of a name.
constexpr std::size_t stack_size = std::size_t{256} * 1024;

// "10.11.6-MariaDB": 10.11
std::pair<int, int> version_of(std::string_view text)
{
  int major = 0;
  int minor = 0;
  const auto dot = std::min(text.find('.'), text.size());
  std::from_chars(text.data(), text.data() + dot, major);
  std::from_chars(text.data() + std::min(dot + 1, text.size()), text.data() + text.size(), minor);
  return {major, minor};
}

bool is_too_old(std::string_view text)
{
  const bool is_mariadb = text.find("MariaDB") != std::string_view::npos;
  return version_of(text) < (is_mariadb ? std::pair(10, 5) : std::pair(5, 7));
}

}  // namespace

std::string sql_text(std::string_view text) { return "_utf8mb4 " + sql_bytes(text); }
std::string sql_bytes(std::string_view bytes) { return "x'" + hex_of(bytes) + "'"; }

void Connection::drop()
{
  if (m_mysql == nullptr) {
    return;
  }
  const WithoutPipeSignal quiet;
  if (is_waiting() && fd() >= 0) {
    ::shutdown(fd(), SHUT_RDWR);  // mysql_close() must not wait for a server that does not answer
  }
  m_lib->mysql_close(m_mysql);
  m_mysql = nullptr;
  m_step = Step::none;
}

Error Connection::late(Instant since, const CallLimits& limit)
{
  drop();
  return no_answer_in_time(m_spec.url + " did not answer within " + elapsed(*m_clock, since, limit));
}

// A server of MySQL speaks first, and at once.
Error Connection::late_login(Instant since, const CallLimits& limit)
{
  sockaddr_storage peer{};
  socklen_t size = sizeof peer;
  const bool is_connected = fd() >= 0 && ::getpeername(fd(), reinterpret_cast<sockaddr*>(&peer), &size) == 0;
  Error error = late(since, limit);
  if (is_connected) {
    error.text = m_spec.url + " accepted the connection, but completed no login within " +
                 elapsed(*m_clock, since, limit) + " (see that it is MySQL or MariaDB, or raise --server-timeout)";
  }
  return error;
}

void Connection::set_options(const HostPort& host, unsigned most_seconds) const
{
  const auto set = [this](mysql_option option, const std::string& text) {
    if (!text.empty()) {
      m_lib->mysql_optionsv(m_mysql, option, text.c_str());
    }
  };
  m_lib->mysql_optionsv(m_mysql, MYSQL_OPT_NONBLOCK, &stack_size);
  set(MYSQL_READ_DEFAULT_FILE, m_spec.defaults_file);
  set(MYSQL_READ_DEFAULT_GROUP, "rlock");
  set(MYSQL_OPT_SSL_CA, m_spec.ssl_ca);
  set(MYSQL_OPT_SSL_CERT, m_spec.ssl_cert);
  set(MYSQL_OPT_SSL_KEY, m_spec.ssl_key);
  m_lib->mysql_optionsv(m_mysql, MYSQL_OPT_CONNECT_TIMEOUT, &most_seconds);
  const my_bool uses_tls = m_spec.uses_tls ? 1 : 0;
  const my_bool verifies_tls = m_spec.verifies_tls ? 1 : 0;
  m_lib->mysql_optionsv(m_mysql, MYSQL_OPT_SSL_ENFORCE, &uses_tls);
  m_lib->mysql_optionsv(m_mysql, MYSQL_OPT_SSL_VERIFY_SERVER_CERT, &verifies_tls);
  const bool uses_socket = !m_spec.socket.empty() || (host.host == "localhost" && host.port == 0);
  const unsigned protocol = uses_socket ? MYSQL_PROTOCOL_SOCKET : MYSQL_PROTOCOL_TCP;
  m_lib->mysql_optionsv(m_mysql, MYSQL_OPT_PROTOCOL, &protocol);
}

Result<Done> Connection::connect_to(const HostPort& host, const CallLimits& limit)
{
  {
    const WithoutPipeSignal quiet;
    m_mysql = m_lib->mysql_init(nullptr);
  }
  if (m_mysql == nullptr) {
    return Error{ErrorCode::os, "no memory for a connection to MySQL"};
  }
  const Instant start = m_clock->now();
  set_options(host, seconds_until(limit.deadline, start));
  MYSQL* connected = nullptr;
  const auto step = [&](auto call) {
    const WithoutPipeSignal quiet;
    const int awaited = call();
    if (fd() >= 0) {
      ::fcntl(fd(), F_SETFD, FD_CLOEXEC);
    }
    return awaited;
  };
  m_step = Step::connect;
  int awaited = step([&] {
    return m_lib->mysql_real_connect_start(&connected, m_mysql, host.host.c_str(), or_null(m_spec.user),
                                           or_null(m_spec.password), m_spec.database.c_str(), host.port,
                                           or_null(m_spec.socket), CLIENT_FOUND_ROWS | CLIENT_MULTI_STATEMENTS);
  });
  while (awaited != 0) {
    switch (wait_for(fd(), poll_events(awaited), *m_clock, limit)) {
      case Waited::ready: break;
      case Waited::stopped: drop(); return interrupted();
      case Waited::late: return late_login(start, limit);
    }
    awaited = step([&] { return m_lib->mysql_real_connect_cont(&connected, m_mysql, awaited & ~MYSQL_WAIT_TIMEOUT); });
  }
  m_step = Step::none;
  if (connected == nullptr) {
    return m_clock->now() >= limit.deadline ? late_login(start, limit) : failed();
  }
  return check_session(limit);
}

Result<Done> Connection::check_session(const CallLimits& limit)
{
  ::fcntl(fd(), F_SETFL, O_NONBLOCK);  // else its TLS would wait for an answer beyond every deadline
  const my_bool reconnects = 0;        // a file may say otherwise; a new session would not be prepared
  m_lib->mysql_optionsv(m_mysql, MYSQL_OPT_RECONNECT, &reconnects);
  if (m_spec.uses_tls && m_lib->mysql_get_ssl_cipher(m_mysql) == nullptr) {
    drop();
    return Error{ErrorCode::unreachable,
                 m_spec.url + ": the server offers no TLS, which the URL demands (give it a certificate)"};
  }
  if (const std::string found = version(); is_too_old(found)) {
    drop();
    return Error{ErrorCode::server_not_ready,
                 m_spec.url + ": the server has the version " + printable(found) +
                     ", which is too old (rlock needs MariaDB 10.5 or MySQL 5.7, or later)"};
  }
  ASSIGN_OR_RETURN(const auto answer, ask(session_sql, limit));
  if (answer.empty() || answer.back().empty() || !may_be_written(answer.back()[0][0].value_or(""))) {
    return refuse_read_only();
  }
  const std::string most = answer.back()[0][1].value_or("");
  std::from_chars(most.data(), most.data() + most.size(), m_most_bytes);
  return Done{};
}

Error Connection::refuse_read_only()
{
  drop();
  return {ErrorCode::server_not_ready, m_spec.url + ": the server is read-only (name the primary server)"};
}

// libmariadb takes no notice of a file of options that it cannot read, and would connect as another user.
Result<Done> Connection::check_files() const
{
  for (const std::string* file : {&m_spec.defaults_file, &m_spec.ssl_ca, &m_spec.ssl_cert, &m_spec.ssl_key}) {
    if (file->empty()) {
      continue;
    }
    struct stat found = {};
    const bool is_there = ::access(file->c_str(), R_OK) == 0 && ::stat(file->c_str(), &found) == 0;
    if (!is_there || S_ISDIR(found.st_mode)) {
      return Error{ErrorCode::config,
                   m_spec.url + ": cannot read " + printable(*file) + ": " + os_text(is_there ? EISDIR : errno)};
    }
  }
  return Done{};
}

// Each host gets its part of the time that is left.
Result<Done> Connection::connect(const CallLimits& limit)
{
  ASSIGN_OR_RETURN(const auto library, libmariadb());
  m_lib = library;
  RETURN_IF_ERROR(check_files());
  return in_turn(m_spec.hosts, *m_clock, limit,
                 [this](const HostPort& host, const CallLimits& share) { return connect_to(host, share); });
}

Error Connection::failed()
{
  const unsigned number = m_lib->mysql_errno(m_mysql);
  const NumberRow& row = meaning_of(number);
  m_refusal = row.refusal;
  Error error = unreachable(m_spec.url + ": " + printable(m_lib->mysql_error(m_mysql)), row.advice);
  error.code = row.code;
  error.was_there = is_loss(number);
  m_step = Step::none;
  if (m_refusal != Refusal::killed && m_refusal != Refusal::not_killed && m_refusal != Refusal::no_such_table) {
    drop();
  }
  return error;
}

void Connection::take_rows()
{
  Rows rows;
  const unsigned columns = m_lib->mysql_num_fields(m_rows);
  while (MYSQL_ROW values = m_lib->mysql_fetch_row(m_rows)) {
    const unsigned long* const lengths = m_lib->mysql_fetch_lengths(m_rows);
    Row& row = rows.emplace_back(columns);
    for (unsigned i = 0; i < columns; ++i) {
      if (values[i] != nullptr) {
        row[i].emplace(values[i], lengths[i]);
      }
    }
  }
  m_lib->mysql_free_result(m_rows);
  m_rows = nullptr;
  m_answer.push_back(std::move(rows));
}

std::optional<Error> Connection::finish_step()
{
  if (m_failure != 0 && m_step != Step::rows) {
    return failed();
  }
  if (m_step != Step::rows) {
    m_step = Step::rows;
    m_awaited = m_lib->mysql_store_result_start(&m_rows, m_mysql);
    return std::nullopt;
  }
  if (m_rows != nullptr) {
    take_rows();
  } else if (m_lib->mysql_errno(m_mysql) != 0) {
    return failed();
  }
  if (m_lib->mysql_more_results(m_mysql) == 0) {
    m_step = Step::none;
    return std::nullopt;
  }
  m_step = Step::next;
  m_awaited = m_lib->mysql_next_result_start(&m_failure, m_mysql);
  return std::nullopt;
}

void Connection::resume()
{
  const WithoutPipeSignal quiet;
  switch (m_step) {
    case Step::none:
    case Step::connect: break;
    case Step::query: m_awaited = m_lib->mysql_real_query_cont(&m_failure, m_mysql, m_awaited); break;
    case Step::rows: m_awaited = m_lib->mysql_store_result_cont(&m_rows, m_mysql, m_awaited); break;
    case Step::next: m_awaited = m_lib->mysql_next_result_cont(&m_failure, m_mysql, m_awaited); break;
  }
}

void Connection::send(std::string_view sql)
{
  m_refusal = Refusal::none;
  m_sql = on_tables(sql, m_tables);
  m_answer.clear();
  m_failure = 0;
  m_step = Step::query;
  const WithoutPipeSignal quiet;
  m_awaited = m_lib->mysql_real_query_start(&m_failure, m_mysql, m_sql.data(), m_sql.size());
}

Result<std::optional<Answer>> Connection::receive(const CallLimits& limit)
{
  for (;;) {
    while (m_step != Step::none && m_awaited == 0) {
      if (const auto error = finish_step()) {
        return *error;
      }
    }
    if (m_step == Step::none) {
      return std::optional(std::move(m_answer));
    }
    switch (wait_for(fd(), poll_events(m_awaited), *m_clock, limit)) {
      case Waited::ready: resume(); break;
      case Waited::stopped: return interrupted();
      case Waited::late: return std::optional<Answer>{};
    }
  }
}

Result<Answer> Connection::ask(std::string_view sql, const CallLimits& limit)
{
  m_refusal = Refusal::none;
  const Instant start = m_clock->now();
  if (m_mysql == nullptr) {
    RETURN_IF_ERROR(connect(limit));
  }
  if (m_most_bytes > 0 &&
      sql.size() >= m_most_bytes) {  // the server would end the connection, maybe before it can say why
    m_refusal = Refusal::too_large;
    return Error{ErrorCode::config, m_spec.url + " takes no packet of " + std::to_string(sql.size()) +
                                        " bytes, but of " + std::to_string(m_most_bytes) +
                                        std::string(too_large_advice)};
  }
  send(sql);
  auto answer = receive(limit);
  if (!answer) {
    if (is_waiting()) {  // stopped
      drop();
    }
    return answer.error();
  }
  return *answer ? Result<Answer>(*std::move(*answer)) : late(start, limit);
}

}  // namespace rlock::mysql
