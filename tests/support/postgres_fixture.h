// SPDX-License-Identifier: Apache-2.0
// A private PostgreSQL server of a test case, on a unix socket in a directory of its own.
#pragma once

#include <cstdint>
#include "support/database_server.h"

namespace rlock::test {

// Whether this machine has the programs of a PostgreSQL server.
bool has_postgres();

// Makes a file that only the user of a server may read, as PostgreSQL wants it of a key.
std::string file_for_postgres(const std::string& text);

class PostgresServer final : public SqlServer {
 public:
  // `settings`: of postgresql.conf, as "fsync=off". Skips the test case where there is no PostgreSQL. `on_tcp`: listens on a port
  // of 127.0.0.1 as well.
  explicit PostgresServer(const std::vector<std::string>& settings = {}, bool on_tcp = false);

  [[nodiscard]] std::string url() const override { return url("postgres"); }
  [[nodiscard]] std::string url(const std::string& user, const std::string& parameters) const override;
  [[nodiscard]] std::string url(const std::string& user) const { return url(user, ""); }
  [[nodiscard]] std::string tcp_url(const std::string& user, const std::string& parameters) const;
  [[nodiscard]] std::uint16_t port() const { return m_port; }  // 0: none
  [[nodiscard]] const std::filesystem::path& socket_directory() const { return dir(); }
  [[nodiscard]] Process start_sql(const std::string& text) const override;
  [[nodiscard]] std::unique_ptr<record::Backend> open_backend(const Clock& clock) const override;
  void end_connections() override;
  void start() override;
  void make_standby();  // after kill(): the next start is that of a standby, which waits for a primary

 private:
  [[nodiscard]] bool answers() const;

  std::vector<std::string> m_settings;
  std::uint16_t m_port = 0;
};

}  // namespace rlock::test

#define POSTGRES_CASE(title) CASE_WITH(rlock::test::PostgresServer, server, title)
