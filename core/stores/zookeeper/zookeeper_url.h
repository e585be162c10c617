// SPDX-License-Identifier: Apache-2.0
// The URL of a ZooKeeper ensemble: zookeeper://[user:password@]host[:port][,host[:port]...][/chroot], and zookeeper+tls://.
#pragma once

#include <string>
#include <string_view>
#include <vector>
#include "base/result.h"
#include "net/endpoint.h"

namespace rlock::zookeeper {

inline constexpr std::string_view scheme = "zookeeper";
inline constexpr std::string_view tls_scheme = "zookeeper+tls";
inline constexpr std::uint16_t default_port = 2181;

struct ConnectionSpec {
  std::string url;                // without user and password
  std::vector<Endpoint> members;  // at least one; with TLS files where the URL asks for TLS
  std::string chroot;             // "/app/locks", without a / at the end; empty: none
  std::string user;               // of a digest authentication; empty: none
  std::string password;
  bool uses_tls = false;
  bool is_this_host = false;  // all members are on this host
};

// Errors: ErrorCode::usage: the URL is invalid.
Result<Endpoint> parse_zookeeper_url(std::string_view url);

ConnectionSpec connection_spec(const Endpoint& endpoint);

}  // namespace rlock::zookeeper
