// SPDX-License-Identifier: Apache-2.0
// What the URLs of all servers have in common: their parts, and how an error quotes them. Most engines have URLs of the form
// scheme://user:password@location?name=value&name=value.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>
#include "base/result.h"
#include "net/endpoint.h"

namespace rlock {

bool is_host_name(std::string_view host);  // letters, digits and ".-_"
bool is_host(std::string_view host);       // a host name or an address, also from another server

// The address between the brackets of a URL, which has the zone of a link-local address behind %25 (RFC 6874), or behind a bare %.
std::string host_in_brackets(std::string_view text);

// The URL as an error may quote it, also where the URL is invalid. Left out is what may be a secret: the parameters, all text up
// to the last '@', because a password may contain an unescaped '/', '?' or '@', and a user and password without an '@'. Of a text
// that is no URL, such as "host=db password=x", the value of a password and all that follows it.
// Every text of rlock that shows a server has this form or that of Endpoint::shown.
std::string quotable_url(std::string_view url);

// Whether quotable_url leaves out of a URL that no engine takes what may be a password.
bool hides_password(std::string_view url);

// Whether the text may stand before "://".
bool is_scheme(std::string_view text);

// A reason why a URL is invalid.
inline constexpr std::string_view bad_escape = "a % is not followed by two hexadecimal digits (write %25)";

// The error of an invalid URL: ErrorCode::usage. `good_form`: what to write instead.
Error invalid_url(std::string_view url, std::string_view why, std::string_view good_form);

// Leaves letters, digits and -._~ as they are (RFC 3986).
std::string percent_encoded(std::string_view text);
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

// A URL whose login is decoded and taken out of `parts`.
struct ServerUrl {
  std::string scheme;
  std::string user;
  std::string password;
  UrlParts parts;
};

// Errors: ErrorCode::usage. It refuses what may be a part of a password: an '@' after the host, also in a parameter other than
// `password`, and a ':' that no port follows. So no text of the other parts is a part of the login. It also refuses characters in them
// that cannot be shown, and a comma in the path, which would stand for a second host. `good_form` ends with the path, and parameters.
Result<ServerUrl> read_server_url(std::string_view url, std::string_view good_form);

// The first of `names` that the URL gives more than once, as the reason why it is invalid; empty: none.
std::string repeated_parameter(const UrlParts& parts, std::initializer_list<std::string_view> names);

// Reads "host", "host:3306" or "[::1]:3306"; a port that is not given is 0. nullopt: it is none of them, or the port is not from 1
// to 65535.
std::optional<HostPort> host_port(std::string_view text);

// Reads "host:2379,other": at least one host, each as host_port does. The text of the Error is the reason why the URL is invalid.
Result<std::vector<HostPort>> host_list(std::string_view text, std::uint16_t default_port);

// The Endpoint of a server that is no Redis.
Endpoint other_endpoint(const ServerUrl& url);

// The servers at these hosts, each with the TLS and the password file of `group`.
std::vector<Endpoint> members_at(const std::vector<HostPort>& hosts, std::string_view scheme, const Endpoint& group);

// Whether the host of a URL is this one: no host, a path or an abstract name means a unix socket. The text of an address counts
// only if it is one: 127.0.0.1.example is a name.
bool is_this_host(const std::string& host);

}  // namespace rlock
