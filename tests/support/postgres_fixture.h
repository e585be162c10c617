// SPDX-License-Identifier: Apache-2.0
// A private PostgreSQL server of a test case, on a unix socket in a directory of its own. As root, it runs as the user postgres,
// because PostgreSQL refuses root.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>
#include "support/process.h"

namespace rlock::test {

// Whether this machine has the programs of a PostgreSQL server.
bool has_postgres();

class PostgresServer {
 public:
  // `settings`: of postgresql.conf, as "fsync=off". Skips the test case where there is no PostgreSQL.
  explicit PostgresServer(const std::vector<std::string>& settings = {});
  ~PostgresServer();
  PostgresServer(const PostgresServer&) = delete;
  PostgresServer& operator=(const PostgresServer&) = delete;

  [[nodiscard]] std::string url(const std::string& user = "postgres", const std::string& parameters = "") const;
  // Runs SQL by psql as the superuser; returns the rows, a line each.
  [[nodiscard]] std::string sql(const std::string& text) const;
  [[nodiscard]] bool is_there() const { return m_server != nullptr; }  // false: after kill()
  void kill();                                                         // kill -9 of all its processes: a crash
  void stop();                                                         // SIGSTOP of all its processes
  void resume();
  void start();  // after kill()

 private:
  void signal_all(int number) const;
  [[nodiscard]] Words as_server_user(Words argv) const;
  void wait_until_it_answers();

  std::filesystem::path m_dir;
  std::vector<std::string> m_settings;
  std::unique_ptr<Process> m_server;
};

}  // namespace rlock::test
