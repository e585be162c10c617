// SPDX-License-Identifier: Apache-2.0
// Where a server is, as its URL says (contract: redis://, rediss://, unix://, local:).
#pragma once

#include "base/result.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace rlock {

// PEM files, read anew for each connection.
struct TlsFiles {
  std::string authorities;  // whom we trust; empty: those whom the system trusts
  std::string certificate;  // of ours, with its chain; empty: none
  std::string key;          // of that certificate; empty: it is in the same file
};

struct Endpoint {
  enum class Kind { tcp, unix_socket, local };

  Kind kind = Kind::tcp;
  std::string host = "127.0.0.1";  // tcp; an IPv6 address without its brackets
  std::uint16_t port = 6379;       // tcp
  std::string path;                // unix_socket: absolute
  std::string user;                // percent-decoded; empty: the default user
  std::string password;            // percent-decoded; empty: none
  unsigned db = 0;
  std::optional<TlsFiles> tls;     // tcp: rediss://

  // The URL without user and password: the only form that is ever printed or handed to the job.
  [[nodiscard]] std::string shown() const;
};

// Errors are Fault::usage; they quote the URL without what stands before its '@'.
Result<Endpoint> parse_url(std::string_view url);

}  // namespace rlock
