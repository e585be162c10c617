// SPDX-License-Identifier: Apache-2.0
// The parts of the URL of a server, for engines whose URLs have the form //user:password@location?name=value&name=value.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>
#include "net/endpoint.h"

namespace rlock {

// nullopt: a % is not followed by two hexadecimal digits.
std::optional<std::string> percent_decoded(std::string_view text);

// All texts are percent-encoded, as they stand in the URL.
struct UrlParts {
  std::string user;
  std::string password;
  std::string location;                 // "host:port/database"
  std::vector<std::string> parameters;  // "sslmode=require"

  // With the // and without user and password.
  [[nodiscard]] std::string without_login() const;
  // Removes a parameter and returns its value.
  std::optional<std::string> take(std::string_view name);
};

// `text`: what follows the scheme and its colon; begins with //.
UrlParts url_parts(std::string_view text);

// Reads "host", "host:3306" or "[::1]:3306"; a port that is not given is 0. nullopt: it is none of them, or the port is not from 1
// to 65535.
std::optional<HostPort> host_port(std::string_view text);

// Whether the host of a URL is this one: no host, a path or an abstract name means a unix socket. The text of an address counts
// only if it is one: 127.0.0.1.example is a name.
bool is_this_host(const std::string& host);

}  // namespace rlock
