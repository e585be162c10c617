// SPDX-License-Identifier: Apache-2.0
// The schemes of the URLs of servers. A program without an engine knows its schemes as well: it masks the passwords in such a URL, and
// says how to build the engine in.
#pragma once

#include <algorithm>
#include <array>
#include <string_view>

namespace rlock {

struct ServerScheme {
  std::string_view name;
  std::string_view engine;         // Engine::name (stores/engine.h)
  std::string_view with_tls = {};  // the scheme of such a URL with TLS
};

// No URL of them has an '@' after the host. The forms unix:// and local: of Redis are URLs of a file.
inline constexpr std::array<ServerScheme, 17> server_schemes{{
    {"redis", "redis", "rediss"},
    {"rediss", "redis"},
    {"redis+sentinel", "redis"},
    {"rediss+sentinel", "redis"},
    {"redis+cluster", "redis"},
    {"rediss+cluster", "redis"},
    {"postgresql", "postgres"},
    {"postgres", "postgres"},
    {"mysql", "mysql"},
    {"mariadb", "mysql"},
    {"mongodb", "mongo"},
    {"mongodb+srv", "mongo"},
    {"etcd", "etcd", "etcds"},
    {"etcds", "etcd"},
    {"zookeeper", "zookeeper", "zookeeper+tls"},
    {"zookeeper+tls", "zookeeper"},
    {"s3", "s3"},
}};

// nullptr: rlock has no engine for it.
constexpr const ServerScheme* find_scheme(std::string_view name)
{
  const auto* const found = std::ranges::find(server_schemes, name, &ServerScheme::name);
  return found == server_schemes.end() ? nullptr : found;
}

}  // namespace rlock
