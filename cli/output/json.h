// SPDX-License-Identifier: Apache-2.0
// JSON for scripts: one object on a line, by the rows that `rlock help json` and rlock-json(5) document (json_fields.h).
#pragma once

#include "cli/output/show.h"
#include "doctor/bench.h"
#include "doctor/facts.h"
#include "lock/store.h"
#include "redis/acl.h"
#include "run/environment.h"
#include "run/force.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rlock::cli {

// `type`: "string", "integer", "boolean", "time" (a string, UTC in ISO 8601), or the name of another object; "array of" and
// "or null" with these.
struct JsonField {
  std::string_view name;
  std::string_view type;
  std::string_view meaning;
};

struct JsonObject {
  std::string_view name;
  std::string_view summary;                  // what one object stands for
  std::vector<std::string_view> printed_by;  // verbs; empty: the object is only part of others
  std::vector<JsonField> fields;             // in the order in which they are printed
};

const std::vector<JsonObject>& json_objects();

// Each line ends with a newline. Bytes that are not UTF-8 become U+FFFD.
// `pools`: of which all locks are known, among them that of the lock, or the one that has its name.
std::string status_json(const LockState& state, const std::vector<ShownPool>& pools = {});
// `freeze`: of the lock now, or that has just ended (`thawed`); nullopt: the lock is not frozen. `left`: its ttl; nullopt: unknown.
std::string freeze_json(const LockName& name, const std::optional<HolderInfo>& freeze, std::optional<Millis> left,
                        bool thawed);
std::string run_json(const LockName& name, const PastRun& run);
std::string ttl_json(const LockState& state);
std::string lease_json(const LockName& name, const Hold& hold, std::uint64_t fence, std::optional<Millis> ttl,
                       const std::optional<Shard>& shard = std::nullopt);  // fence 0, ttl nullopt: unknown
// `reason`: of the force-unlock; empty: none was given.
std::string force_json(const LockName& name, const ForceEnd& end, std::string_view reason = {});
std::string event_json(const ShownEvent& shown);
std::string distribution_json(std::string_view measure, const Distribution& times);
std::string pairs_json(double per_second, unsigned connections);
std::string finding_json(const Finding& finding, std::string_view status,
                         std::string_view server);  // server empty: this host
std::string acl_json(std::string_view user, const AclRules& rights, std::string_view line);
// The SQL that gives a user of a database what rlock needs.
std::string rights_json(std::string_view user, std::string_view sql);
// forgotten: the success of once.
std::string forget_json(const LockName& name, bool forgotten, const Forgotten& rest);
std::string setting_json(const ShownSetting& setting);
std::string version_json(std::string_view version, const std::vector<std::string_view>& stores);

}  // namespace rlock::cli
