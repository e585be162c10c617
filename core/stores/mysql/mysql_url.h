// SPDX-License-Identifier: Apache-2.0
// The URL of a MySQL or MariaDB server:
//   mysql://user:password@host:3306,other/database?socket=/path&ssl-mode=verify_identity&ssl-ca=/file&ssl-cert=/file&ssl-key=/file
//     &defaults-file=/my.cnf&create=no&table=shedlock
#pragma once

#include <string>
#include <string_view>
#include <vector>
#include "base/result.h"
#include "net/endpoint.h"

namespace rlock::mysql {

inline constexpr std::string_view scheme = "mysql";
inline constexpr std::string_view mariadb_scheme = "mariadb";

// Texts are percent-decoded; an empty one is not given.
struct ConnectionSpec {
  std::string url;              // without user and password
  std::vector<HostPort> hosts;  // tried in this order; at least one; port 0: the default
  std::string user;
  std::string password;
  std::string database;
  std::string socket;         // then the one host is localhost
  std::string defaults_file;  // my.cnf; empty: the files that mysql(1) reads
  std::string ssl_ca;
  std::string ssl_cert;
  std::string ssl_key;
  bool uses_tls = false;  // refuses a server without it
  bool verifies_tls = false;
  bool creates_tables = true;
  std::string table;  // of ShedLock, to share it; empty: rlock's own tables
};

// ErrorCode::usage: the URL is invalid or has an unknown parameter.
Result<Endpoint> parse_mysql_url(std::string_view url);

ConnectionSpec connection_spec(const Endpoint& endpoint);

}  // namespace rlock::mysql
