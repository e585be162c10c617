// SPDX-License-Identifier: Apache-2.0
// What `rlock doctor` asks the members of an etcd cluster, and what the answers mean for locks. Private to stores/etcd.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>
#include "base/clock.h"
#include "base/defaults.h"
#include "engine/server_findings.h"
#include "lock/finding.h"
#include "stores/etcd/etcd_messages.h"
#include "stores/etcd/etcd_url.h"

namespace rlock::etcd {

struct MemberFacts {
  std::string where;
  std::optional<StatusAnswer> status = std::nullopt;
  std::string error = {};  // why there is no status
};

struct CheckedFacts {
  std::vector<MemberFacts> named;                               // the members that the URL names
  std::optional<std::size_t> voters = std::nullopt;             // of the cluster; nullopt: no member told it
  std::optional<record::ClockDifference> clock = std::nullopt;  // of a member; nullopt: none told it
  bool uses_tls = false;
  bool is_this_host = false;
};

// The time in the head Date of an answer of HTTP, in seconds since 1970; nullopt: it has none.
std::optional<std::int64_t> date_in(std::string_view answer);

// A pure function.
std::vector<Finding> findings_of(const CheckedFacts& facts);

// What is known of servers of this version:
//   loses_leases  may end a lease that was renewed, which no client can notice in time (before 3.4.31 and 3.5.13)
//   shows_past    may answer a linearizable read with an old state after a pause (etcd-io/etcd #20418), some also a keep-alive of a lease
//                 that has just ended (#20590): before 3.4.42, 3.5.28 and 3.6.9
//   too_old       older than rlock supports
enum class VersionIs { good, too_old, loses_leases, shows_past, unknown };
VersionIs judge_version(std::string_view version);

// LockStore::check_server. Errors: no member answers.
Result<std::vector<Finding>> check_server(const ConnectionSpec& spec, const Clock& clock, const CallLimits& limit);

}  // namespace rlock::etcd
