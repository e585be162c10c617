// SPDX-License-Identifier: Apache-2.0
// The URL of an etcd cluster: etcd://user:password@host:2379,other/prefix, and etcds:// with TLS.
#pragma once

#include <string>
#include <string_view>
#include <vector>
#include "base/result.h"
#include "net/endpoint.h"

namespace rlock::etcd {

inline constexpr std::string_view scheme = "etcd";
inline constexpr std::string_view tls_scheme = "etcds";
inline constexpr std::uint16_t default_port = 2379;
inline constexpr std::string_view default_prefix = "rlock";

struct ConnectionSpec {
  std::string url;                // without user and password
  std::vector<Endpoint> members;  // at least one; of the kind tcp
  std::string user;               // empty: none, or the name in the client's certificate
  std::string password;
  std::string prefix{default_prefix};  // what all keys of rlock begin with, before a slash

  [[nodiscard]] bool uses_tls() const { return members.front().tls.has_value(); }
};

// ErrorCode::usage: the URL is invalid, or has a parameter. The endpoint of etcds:// has TlsFiles.
Result<Endpoint> parse_etcd_url(std::string_view url);

ConnectionSpec connection_spec(const Endpoint& endpoint);

}  // namespace rlock::etcd
