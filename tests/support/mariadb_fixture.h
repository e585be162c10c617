// SPDX-License-Identifier: Apache-2.0
// A private MariaDB server of a test case, on a unix socket in a directory of its own; or MySQL 8, from the directory that
// RLOCK_TEST_MYSQL names.
#pragma once

#include "support/database_server.h"

namespace rlock::test {

// Whether this machine has the programs of such a server.
bool has_mariadb();

class MariadbServer final : public SqlServer {
 public:
  // `settings`: of my.cnf, as "innodb-flush-log-at-trx-commit=2". Skips the test case where there is no MariaDB.
  explicit MariadbServer(const std::vector<std::string>& settings = {});

  // The user of this process, who may do everything, on the socket.
  [[nodiscard]] std::string url() const override { return url(""); }
  // `user`: "" for the one of this process.
  [[nodiscard]] std::string url(const std::string& user, const std::string& parameters) const override;
  [[nodiscard]] std::string url(const std::string& user) const { return url(user, ""); }
  [[nodiscard]] Process start_sql(const std::string& text) const override
  {
    return Process(client(text), {.cwd = "/"});
  }
  [[nodiscard]] std::unique_ptr<record::Backend> open_backend(const Clock& clock) const override;
  void end_connections() override;
  void start() override;
  [[nodiscard]] static bool is_mysql();

 private:
  void make_data_directory() const;
  [[nodiscard]] std::string socket() const { return (dir() / "socket").string(); }
  [[nodiscard]] Words console() const;  // the client program
  [[nodiscard]] Words client(const std::string& text) const;

  std::vector<std::string> m_settings;
};

}  // namespace rlock::test

#define MARIADB_CASE(title) CASE_WITH(rlock::test::MariadbServer, server, title)
