// SPDX-License-Identifier: Apache-2.0
// JSON for scripts: one object on a line, by the rows that rlock-json(5) documents.
#pragma once

#include "cli/output/show.h"
#include "doctor/distribution.h"
#include "doctor/finding.h"
#include "lock/store.h"
#include "run/force.h"
#include "store/redis/acl_rules.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace rlock::cli {

// Each line ends with a newline. Bytes that are not UTF-8 become U+FFFD.
std::string status_json(const LockState& state);
std::string run_json(const LockName& name, const PastRun& run);
std::string ttl_json(const LockState& state);
std::string lease_json(const LockName& name, const Hold& hold, std::uint64_t fence, std::optional<Millis> ttl,
                       std::optional<std::size_t> shard = std::nullopt);  // fence 0, ttl nullopt: unknown
std::string force_json(const LockName& name, const ForceEnd& end);
std::string event_json(const ShownEvent& shown);
std::string distribution_json(std::string_view measure, const Distribution& times);
std::string pairs_json(double per_second, unsigned connections);
std::string finding_json(const Finding& finding, std::string_view status,
                         std::string_view server);  // server empty: this host
std::string acl_json(std::string_view user, const AclRules& rights, std::string_view line);
std::string forget_json(const LockName& name, bool forgotten);
std::string version_json(std::string_view version);

}  // namespace rlock::cli
