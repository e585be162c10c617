// SPDX-License-Identifier: Apache-2.0
// The URL of a PostgreSQL server: as libpq reads it, and `create` and `table` besides.
#pragma once

#include <string>
#include <string_view>
#include <vector>
#include "base/result.h"
#include "net/endpoint.h"

namespace rlock::postgres {

inline constexpr std::string_view scheme = "postgresql";

// One of several hosts, as libpq has its parameters host, hostaddr and port; an empty text is not given.
struct Host {
  std::string name;
  std::string address;
  std::string port;
};

struct ConnectionSpec {
  std::string url;  // without user and password
  std::string user;
  std::string password;
  bool verifies_tls = false;  // demands a server with a valid certificate
  bool creates_tables = true;
  std::string table = {};  // of ShedLock, to share it; empty: rlock's own tables
  // Tried in this order. Empty: there is one, or libpq alone knows them or their order.
  std::vector<Host> hosts = {};
};

// Takes the password and user out of the URL, and lets libpq check the rest. Errors: ErrorCode::usage: the URL is invalid or has
// an unknown parameter; ErrorCode::config: there is no libpq.
Result<Endpoint> parse_postgres_url(std::string_view url);

ConnectionSpec connection_spec(const Endpoint& endpoint);

}  // namespace rlock::postgres
