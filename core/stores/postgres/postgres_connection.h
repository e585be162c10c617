// SPDX-License-Identifier: Apache-2.0
// One connection to PostgreSQL by libpq, without blocking calls: each request ends by its deadline. Private to stores/postgres.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include "base/defaults.h"
#include "base/reply.h"
#include "base/result.h"
#include "stores/postgres/libpq.h"
#include "stores/postgres/postgres_errors.h"
#include "stores/postgres/postgres_url.h"

namespace rlock::postgres {

inline constexpr int oldest_version = 120'000;  // as PQserverVersion counts: 12.0

// A parameter of a statement, in text or binary form.
struct Parameter {
  std::string text;
  bool is_binary = false;
  bool is_null = false;
};

struct FreeRows {
  const Libpq* pq = nullptr;
  void operator()(PGresult* rows) const { pq->PQclear(rows); }
};

// The rows of an answer, with values in binary form (Connection::ask) or in text form (Connection::run).
class Rows {
 public:
  Rows(PGresult* rows, const Libpq& pq) : m_rows(rows, FreeRows{&pq}), m_pq(&pq) {}
  [[nodiscard]] int count() const { return m_pq->PQntuples(m_rows.get()); }
  [[nodiscard]] int columns() const { return m_pq->PQnfields(m_rows.get()); }
  [[nodiscard]] bool is_null(int row, int column) const { return m_pq->PQgetisnull(m_rows.get(), row, column) != 0; }
  [[nodiscard]] std::string text(int row, int column) const
  {
    return {m_pq->PQgetvalue(m_rows.get(), row, column),
            static_cast<std::size_t>(m_pq->PQgetlength(m_rows.get(), row, column))};
  }
  [[nodiscard]] std::int64_t number(int row, int column) const;  // of a bigint in binary form

 private:
  std::unique_ptr<PGresult, FreeRows> m_rows;
  const Libpq* m_pq;
};

// Each request ends by its deadline, except one that connects to a host whose name is looked up: libpq waits for the resolver of the
// system (resolv.conf: timeout and attempts).
//
// Not thread-safe. After an Error, unless refusal() says that the server answered, the connection is dropped. A request that the
// stop token interrupts keeps it: the next request reads that answer first, and drops it.
class Connection {
 public:
  // `clock` must outlive it. Connects at the first request.
  Connection(ConnectionSpec spec, const Clock& clock) : m_spec(std::move(spec)), m_clock(&clock) {}
  ~Connection() { drop(); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Runs one statement; the values of its rows are binary.
  //   unreachable       no answer by the deadline, no server, connection lost: the statement may have happened
  //   refused           wrong password, or a missing right
  //   server_not_ready  read-only, in recovery, shutting down, out of space
  //   config            the database is no such, the name is too long
  Result<Rows> ask(const std::string& sql, std::span<const Parameter> parameters, const CallLimits& limit);
  // Runs several statements as one transaction; the values of the rows, which are those of the last statement, are text.
  Result<Rows> run(const std::string& sql, const CallLimits& limit);
  [[nodiscard]] Refusal refusal() const { return m_refusal; }  // of the last Error of ask or run

  // Several listeners share the connection: each names the notifications that it wants.
  using Wanted = std::function<bool(const std::string& text)>;
  // The next one that is wanted; nullopt: none by the deadline.
  Result<std::optional<std::string>> next_notification(const Wanted& is_wanted, const CallLimits& limit);
  // One has arrived with an answer, or was read for another listener, so that fd() does not become readable for it.
  [[nodiscard]] bool has_notification(const Wanted& is_wanted) const { return std::ranges::any_of(m_heard, is_wanted); }

  // Sends statements without waiting. The next request reads their answer first. Does nothing where there is no connection.
  void send_ahead(const std::string& sql);

  void drop();
  // Changes whenever a connection is made or dropped. Odd: there is one.
  [[nodiscard]] std::uint64_t generation() const { return m_generation; }
  // The process of the server as it said at the login; 0: not connected. A pooler says a number of its own.
  [[nodiscard]] int server_pid() const { return m_pg == nullptr ? 0 : m_pq->PQbackendPID(m_pg); }
  [[nodiscard]] int fd() const { return m_pg == nullptr ? -1 : m_pq->PQsocket(m_pg); }
  [[nodiscard]] const std::string& where() const { return m_spec.url; }

 private:
  Result<Done> begin(Instant since, const CallLimits& limit);
  Result<Done> read_old_answers(Instant since, const CallLimits& limit);
  Result<Done> connect(const CallLimits& limit);
  Result<Done> connect_to(const Host& host, const CallLimits& limit);
  Result<Done> wait(int events, Instant since, const CallLimits& limit);
  Error too_late(Instant since, const CallLimits& limit);
  Result<Done> check_version();
  Result<Rows> answer(Instant since, const CallLimits& limit);
  Error not_connected();
  Error lost();
  Error refused(const PGresult* answer);
  void keep_notifications();
  std::optional<std::string> kept_notification(const Wanted& is_wanted);

  ConnectionSpec m_spec;
  const Clock* m_clock;
  const Libpq* m_pq = nullptr;
  PGconn* m_pg = nullptr;
  std::uint64_t m_generation = 0;
  bool m_has_old_answers = false;  // that a request before did not wait for
  std::deque<std::string> m_heard;
  Refusal m_refusal = Refusal::none;
};

}  // namespace rlock::postgres
