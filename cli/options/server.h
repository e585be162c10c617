// SPDX-License-Identifier: Apache-2.0
// Which servers, and how rlock reaches them: the options, and the ServerSpec that is made of them.
#pragma once

#include "cli/options/environment.h"
#include "cli/options/option_table.h"
#include "stores/open.h"

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rlock::cli {

inline constexpr const char* server_group = "Server";  // heading of the options; rlock help servers describes them

struct RawServer {
  std::vector<std::string> urls;
  std::optional<Millis> timeout;
  OptionText password_file;
  OptionText cacert;
  OptionText cert;
  OptionText tls_key;
  std::optional<QuorumRule> quorum;
  std::optional<Millis> restart_guard;
  bool no_restart_guard = false;
};

void add_server_options(OptionTable& options, RawServer& raw);
// For a verb that asks a single server: the options for several servers are parsed, because the config file may have them, and
// help hides them.
void add_single_server_options(OptionTable& options, RawServer& raw);

// Options come before variables, and variables before the config file; but the server of the file comes before that of
// REDIS_URL. Reads the password file, and no other file.
// ErrorCode::usage: an option is wrong. ErrorCode::config: a variable, a setting or the password file is wrong.
Result<ServerSpec> resolve_server(const RawServer& raw, const Environment& environment);

inline constexpr std::string_view default_url = "redis://127.0.0.1:6379";

// Whether the word is the @NAME of a URL in the config file.
inline bool is_name_of_server(std::string_view word) { return word.starts_with('@'); }

// The URLs in a variable are separated by spaces.
std::vector<std::string> urls_in(std::string_view text);

struct NamedEndpoints {
  std::vector<Endpoint> endpoints;  // at least one; several form a quorum
  Origin origin;                    // --server, RLOCK_SERVER, the line of the file, REDIS_URL, or the default
  Origin url_origin;                // where the last URL stands: for an @NAME, the line of [servers]
  std::string named_by;             // the name of the origin; "--server @prod, /etc/rlock.toml:9"
};

// The endpoints of `urls`, the values of --server; when it is empty those of RLOCK_SERVER, the config file, REDIS_URL, or the
// default server, whichever is set first. REDIS_URL comes behind the file, because it is often the server of an application,
// such as a cache. @NAME stands for the URLs that the file's table [servers] has under NAME.
// The error names the source of a bad URL: ErrorCode::usage for an option, else ErrorCode::config. ErrorCode::config: the file
// has no such NAME.
Result<NamedEndpoints> resolve_endpoints(const std::vector<std::string>& urls, const Environment& environment);

// The server's options among those that were given.
RawServer server_given_by(std::span<const Given> options);

// The variables in which a caller names the files for TLS.
inline constexpr std::string_view cacert_variable = "RLOCK_CACERT";
inline constexpr std::string_view cert_variable = "RLOCK_CERT";
inline constexpr std::string_view tls_key_variable = "RLOCK_TLS_KEY";

}  // namespace rlock::cli
