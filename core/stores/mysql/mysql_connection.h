// SPDX-License-Identifier: Apache-2.0
// One connection to MySQL or MariaDB by libmariadb, without blocking calls: each request ends by its deadline. Private to
// stores/mysql.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>
#include "base/defaults.h"
#include "base/result.h"
#include "stores/mysql/libmariadb.h"
#include "stores/mysql/mysql_schema.h"
#include "stores/mysql/mysql_url.h"

namespace rlock::mysql {

using Row = std::vector<std::optional<std::string>>;  // nullopt: NULL
using Rows = std::vector<Row>;
using Answer = std::vector<Rows>;  // of the statements that have rows, in their order

// What the server refused, where the adapter tells cases apart.
//   conflict: a deadlock or a lock that was not free in time    killed: by KILL QUERY
//   not_killed: a KILL of a connection that is gone, or that is another user's
enum class Refusal { none, no_such_table, no_such_column, conflict, killed, not_killed, too_large, other };

// Of @@global.read_only. MariaDB 12 has four texts in place of 0 and 1; the others are ON, NO_LOCK and NO_LOCK_NO_ADMIN.
inline bool may_be_written(std::string_view read_only) { return read_only == "0" || read_only == "OFF"; }

// A literal in SQL, whatever the text is.
std::string sql_text(std::string_view text);
std::string sql_bytes(std::string_view bytes);

// Not thread-safe. After an Error the connection is dropped, so that a transaction that has begun is rolled back, unless refusal()
// is `killed`, `not_killed` or `no_such_table`. libmariadb sets the disposition of SIGPIPE and forgets FD_CLOEXEC; both are put right here.
class Connection {
 public:
  // `clock` must outlive it. Connects at the first request, to the first host that may be written to.
  Connection(ConnectionSpec spec, const Clock& clock)
      : m_spec(std::move(spec)), m_tables(tables_for(m_spec.table)), m_clock(&clock)
  {
  }
  ~Connection() { drop(); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Sends statements in one packet, with the names of the tables (on_tables), and returns what they answer. The first one that fails ends them.
  //   unreachable       no answer by the deadline, no server, no database, too many connections, connection lost: the statements
  //                     may have happened
  //   refused           wrong password, or a missing right
  //   server_not_ready  read-only, too old, out of space
  //   config            the name of the lock does not fit, a table is not rlock's
  // Each request ends by its deadline, except one that connects: to a host whose name is looked up, libmariadb waits for the resolver
  // of the system (resolv.conf: timeout and attempts); in the handshake of TLS for a second more, and whatever the StopToken says.
  Result<Answer> ask(std::string_view sql, const CallLimits& limit);
  [[nodiscard]] Refusal refusal() const { return m_refusal; }  // of the last Error

  // The same in two steps: sends, and receives as much as is there by the deadline (nullopt: not all). The connection is there.
  void send(std::string_view sql);
  Result<std::optional<Answer>> receive(const CallLimits& limit);
  [[nodiscard]] bool is_waiting() const { return m_step != Step::none; }

  void drop();
  // Drops the connection. The Error of a server whose @@global.read_only is on, as connecting gives it.
  Error refuse_read_only();
  [[nodiscard]] int fd() const { return m_mysql == nullptr ? -1 : m_lib->mysql_get_socket(m_mysql); }
  [[nodiscard]] const std::string& where() const { return m_spec.url; }
  // Of the server to which it is connected: "10.11.6-MariaDB".
  [[nodiscard]] std::string version() const { return m_mysql == nullptr ? "" : m_lib->mysql_get_server_info(m_mysql); }

 private:
  enum class Step { none, connect, query, rows, next };

  Result<Done> connect(const CallLimits& limit);
  Result<Done> connect_to(const HostPort& host, const CallLimits& limit);
  [[nodiscard]] Result<Done> check_files() const;
  Result<Done> check_session(const CallLimits& limit);
  void set_options(const HostPort& host, unsigned most_seconds) const;
  void resume();                       // after the descriptor became ready
  std::optional<Error> finish_step();  // begins the next one
  void take_rows();
  Error failed();
  Error late(Instant since, const CallLimits& limit);
  Error late_login(Instant since, const CallLimits& limit);

  ConnectionSpec m_spec;
  Tables m_tables;
  const Clock* m_clock;
  const Libmariadb* m_lib = nullptr;
  MYSQL* m_mysql = nullptr;
  Refusal m_refusal = Refusal::none;
  Step m_step = Step::none;
  int m_awaited = 0;  // MYSQL_WAIT_READ, ...; 0: the step is complete
  int m_failure = 0;  // of the step
  MYSQL_RES* m_rows = nullptr;
  std::string m_sql;
  std::size_t m_most_bytes = 0;  // of a packet: max_allowed_packet of the session; 0: not known
  Answer m_answer;
};

}  // namespace rlock::mysql
