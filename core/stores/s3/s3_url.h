// SPDX-License-Identifier: Apache-2.0
// The URL of a bucket: s3://[ACCESS@]bucket/prefix[?region=&endpoint=&profile=&clock-skew=].
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include "base/clock.h"
#include "base/result.h"
#include "net/endpoint.h"

namespace rlock::s3 {

inline constexpr std::string_view scheme = "s3";
inline constexpr std::string_view default_prefix = "rlock";
inline constexpr std::string_view default_region = "us-east-1";

// How far the clocks of the hosts that answer for one bucket may differ, where the URL does not say it (`clock-skew`).
inline constexpr Millis default_clock_skew{2000};
inline constexpr Millis longest_clock_skew{60'000};

struct ConnectionSpec {
  std::string url;  // as it is shown
  std::string bucket;
  std::string prefix;    // without a / at its ends; only characters that stand in a URL as they are
  std::string endpoint;  // "http://127.0.0.1:9000"; empty: Amazon's of the region
  std::string region;    // empty: that of the environment or the profile
  std::string profile;   // empty: that of the environment
  std::string user;      // the access key; empty: that of the environment or the profile
  std::string password;  // the secret of `user`
  Millis clock_skew = default_clock_skew;

  [[nodiscard]] bool uses_tls() const { return !endpoint.starts_with("http://"); }
  [[nodiscard]] bool is_this_host() const;
};

// Errors: ErrorCode::usage: the URL is invalid or has an unknown parameter.
Result<Endpoint> parse_s3_url(std::string_view url);

ConnectionSpec connection_spec(const Endpoint& endpoint);

// The key of the object of a lock below the prefix: one part of a path, of characters that a URL and a signature have as they are;
// "a/b" is a~2fb. It begins with no dot, because the keys of rlock's other objects do.
std::string key_of_lock(std::string_view name);
// nullopt: it is the key of no lock.
std::optional<std::string> lock_of_key(std::string_view key);

}  // namespace rlock::s3
