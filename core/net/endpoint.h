// SPDX-License-Identifier: Apache-2.0
// Where a server is and how to reach it: addresses, credentials, TLS files. A plain value.
#pragma once

#include <sys/socket.h>
#include <sys/un.h>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rlock {

// PEM files. Each connection reads them again.
struct TlsFiles {
  std::string authorities;  // trusted CA certificates; empty: the CA certificates that the system trusts
  std::string certificate;  // the client's certificate with its chain; empty: none
  std::string key;          // the key of that certificate; empty: the file of the certificate has the key
};

struct HostPort {
  std::string host;  // an IPv6 address without its brackets
  std::uint16_t port = 6379;
  friend auto operator<=>(const HostPort&, const HostPort&) = default;  // NOLINT(modernize-use-nullptr): false alarm
};
std::string show(const HostPort& at);  // as in a URL: "[::1]:6379"

// The sentinels of a master. User, password and TLS are for the sentinels, not for the master.
struct Sentinels {
  std::vector<HostPort> hosts;  // at least one
  std::string master;           // the name of the master
  std::string user;
  std::string password;
  std::optional<TlsFiles> tls;
};

// Advice for a server that does not answer, and for a refused login.
inline constexpr std::string_view is_it_running = " (is it running? -S names another server)";
inline constexpr std::string_view check_login =
    " (check the URL, RLOCK_PASSWORD, RLOCK_PASSWORD_FILE or --password-file)";
// The text with the login that was tried, "the user 'ann' and the password in …", instead of all places where a login may stand.
// An empty login is unknown and changes nothing.
std::string with_login(std::string text, std::string_view login);

struct Endpoint {
  enum class Kind { tcp, unix_socket, local, sentinel, cluster, other };
  enum class NamedBy { user, sentinels, cluster };

  std::string scheme = "redis";  // of the URL: selects the engine (stores/open.h); every form of a Redis URL is "redis"
  Kind kind = Kind::tcp;
  std::string host = "127.0.0.1";  // tcp; an IPv6 address without its brackets
  std::uint16_t port = 6379;       // tcp
  std::string path;                // unix_socket: absolute; other: what follows the scheme in the URL
  std::vector<HostPort> nodes;     // cluster: some of its nodes, at least one
  std::string user;                // percent-decoded; empty: the default user
  std::string password;            // percent-decoded; empty: none
  std::string password_file;  // the file of the password, which rlock reads again when the server refuses the password
  unsigned db = 0;
  std::optional<TlsFiles> tls;       // rediss://, rediss+cluster://; rediss+sentinel://: for the master
  bool must_be_master = false;       // tcp: a replica is refused before the first request
  bool refuses_replica = false;      // tcp, unix_socket: a replica is refused with its first answer at the latest
  NamedBy named_by = NamedBy::user;  // tcp: who told the address
  Sentinels sentinels;               // sentinel: instead of host and port

  // The URL without user and password: the only form that rlock prints.
  [[nodiscard]] std::string shown() const;
  // The URL with the users of the server and of the sentinels: the form that the job gets.
  [[nodiscard]] std::string without_passwords() const;

  // The scheme of the URL of such a server with TLS: "rediss".
  [[nodiscard]] std::string scheme_with_tls() const;
  [[nodiscard]] bool is_redis() const { return kind != Kind::other; }
  [[nodiscard]] bool is_cluster() const { return kind == Kind::cluster; }
  [[nodiscard]] bool is_sentinel_group() const { return kind == Kind::sentinel; }
  [[nodiscard]] bool has_group() const { return is_cluster() || is_sentinel_group(); }
  // Whether a connection logs in; false: it is the default user without a password.
  [[nodiscard]] bool is_authenticated() const;
  // The private server of `local:`, which has no password.
  [[nodiscard]] bool is_private() const { return kind == Kind::local; }
  // The addresses in the URL: of the server, the sentinels or the nodes. Empty: a unix socket, or `local:`.
  [[nodiscard]] std::vector<HostPort> addresses() const;
  // Whether both name the same server, as far as the URLs tell.
  [[nodiscard]] bool is_same_server(const Endpoint& other) const;
};

// A path as the address of a unix socket. Private to net and redis.

// In bytes. One byte of the address stays free, because the getsockname of some servers needs a final zero byte.
constexpr std::size_t longest_socket_path = sizeof(sockaddr_un::sun_path) - 1;

inline bool fits_socket_address(std::string_view path) { return path.size() <= longest_socket_path; }

inline std::string socket_path_too_long()
{
  return "the path of a unix socket can have " + std::to_string(longest_socket_path) + " bytes at most";
}

// `path` must fit.
inline sockaddr_un socket_address(std::string_view path)
{
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

}  // namespace rlock
