// SPDX-License-Identifier: Apache-2.0
// A private PostgreSQL server of a test case, on a unix socket in a directory of its own.
#pragma once

#include "support/database_server.h"

namespace rlock::test {

// Whether this machine has the programs of a PostgreSQL server.
bool has_postgres();

class PostgresServer final : public DatabaseServer {
 public:
  // `settings`: of postgresql.conf, as "fsync=off". Skips the test case where there is no PostgreSQL.
  explicit PostgresServer(const std::vector<std::string>& settings = {});

  [[nodiscard]] std::string url() const override { return url("postgres"); }
  [[nodiscard]] std::string url(const std::string& user, const std::string& parameters = "") const;
  // Runs SQL by psql as the superuser; returns the rows, a line each.
  [[nodiscard]] std::string sql(const std::string& text) const;
  [[nodiscard]] std::unique_ptr<record::Backend> open_backend(const Clock& clock) const override;
  [[nodiscard]] std::vector<std::string> lock_names() const override;
  void delete_locks() const override;
  void end_connections() const override;
  void start() override;

 private:
  void wait_until_it_answers();

  std::vector<std::string> m_settings;
};

}  // namespace rlock::test
