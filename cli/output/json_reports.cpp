// SPDX-License-Identifier: Apache-2.0
// The objects of reports: of doctor, bench, acl, config and version.
#include "cli/output/json.h"
#include "cli/output/json_fields.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rlock::cli {
namespace {

constexpr Fields<Bucket, 2> bucket_fields{{
    {{"le_us", "integer", "the longest time in the bucket"},
     [](const Bucket& bucket) -> Json { return bucket.most.count(); }},
    {{"count", "integer", "how many requests took no longer, and longer than the bucket before says"},
     [](const Bucket& bucket) -> Json { return bucket.count; }},
}};

struct Measure {
  std::string_view name;
  const Distribution& times;
};
constexpr Fields<Measure, 7> measure_fields{{
    {{"measure", "string", "acquire, release or hand_over"},
     [](const Measure& measure) -> Json { return measure.name; }},
    {{"count", "integer", "how many were measured"},
     [](const Measure& measure) -> Json { return measure.times.count; }},
    {{"p50_us", "integer", "median"}, [](const Measure& measure) -> Json { return measure.times.p50.count(); }},
    {{"p90_us", "integer", "90th percentile"},
     [](const Measure& measure) -> Json { return measure.times.p90.count(); }},
    {{"p99_us", "integer", "99th percentile"},
     [](const Measure& measure) -> Json { return measure.times.p99.count(); }},
    {{"max_us", "integer", "the longest"}, [](const Measure& measure) -> Json { return measure.times.max.count(); }},
    {{"histogram", "array of bucket", "the times by length"},
     [](const Measure& measure) {
       return array(measure.times.histogram, [](const Bucket& bucket) { return object(bucket, bucket_fields); });
     }},
}};

struct Pairs {
  double per_second;
  unsigned connections;
};
constexpr Fields<Pairs, 3> pairs_fields{{
    {{"measure", "string", "pairs"}, [](const Pairs&) -> Json { return "pairs"; }},
    {{"per_second", "integer", "how many times a second a lock was taken and released, all connections together"},
     [](const Pairs& pairs) -> Json { return static_cast<std::int64_t>(pairs.per_second); }},
    {{"connections", "integer", "connections at work, each on a lock of its own"},
     [](const Pairs& pairs) -> Json { return pairs.connections; }},
}};

struct ShownFinding {
  const Finding& finding;
  std::string_view status;
  std::string_view server;
};
constexpr Fields<ShownFinding, 5> finding_fields{{
    {{"check", "string", "name of the check"}, [](const ShownFinding& shown) -> Json { return shown.finding.check; }},
    {{"status", "string", "ok, warn, fail or unknown"}, [](const ShownFinding& shown) -> Json { return shown.status; }},
    {{"found", "string", "what the check found, for people"},
     [](const ShownFinding& shown) -> Json { return shown.finding.found; }},
    {{"advice", "string or null", "what to do about it"},
     [](const ShownFinding& shown) { return or_null(shown.finding.advice); }},
    {{"server", "string or null", "the server; null: this host"},
     [](const ShownFinding& shown) { return or_null(shown.server); }},
}};

struct ShownRules {
  std::string_view user;
  const AclRules& rules;
  std::string_view line;
};
constexpr Fields<ShownRules, 5> acl_fields{{
    {{"user", "string", "name of the user"}, [](const ShownRules& shown) -> Json { return shown.user; }},
    {{"keys", "array of string", "patterns of the keys"},
     [](const ShownRules& shown) -> Json { return shown.rules.keys; }},
    {{"channels", "array of string", "patterns of the channels"},
     [](const ShownRules& shown) -> Json { return shown.rules.channels; }},
    {{"commands", "array of string", "commands"}, [](const ShownRules& shown) -> Json { return shown.rules.commands; }},
    {{"line", "string", "the ACL SETUSER command"}, [](const ShownRules& shown) -> Json { return shown.line; }},
}};

struct ShownSql {
  std::string_view user;
  std::string_view sql;
};
constexpr Fields<ShownSql, 2> sql_fields{{
    {{"user", "string", "name of the user"}, [](const ShownSql& shown) -> Json { return shown.user; }},
    {{"sql", "string", "statements that make the tables and grant the rights"},
     [](const ShownSql& shown) -> Json { return shown.sql; }},
}};

// The file and the line of "/etc/rlock.toml:9".
std::pair<std::string_view, std::string_view> file_and_line(std::string_view place)
{
  const std::size_t colon = std::min(place.rfind(':'), place.size());
  return {place.substr(0, colon), place.substr(std::min(colon + 1, place.size()))};
}

constexpr Fields<ShownSetting, 6> setting_fields{{
    {{"name", "string",
      "long option without --, after its verb where the config file has it in [VERB]; or another name"},
     [](const ShownSetting& setting) -> Json { return setting.name; }},
    {{"value", "string or null", "value with secrets masked; null: none"},
     [](const ShownSetting& setting) { return setting.value ? Json(*setting.value) : Json(); }},
    {{"origin", "string", "option, variable, file or default"},
     [](const ShownSetting& setting) -> Json { return setting.origin; }},
    {{"variable", "string or null", "name of the variable of the environment"},
     [](const ShownSetting& setting) { return or_null(setting.variable); }},
    {{"file", "string or null", "config file that has the value, also where an option names it by @NAME"},
     [](const ShownSetting& setting) { return or_null(file_and_line(setting.place).first); }},
    {{"line", "integer or null", "line of that file"},
     [](const ShownSetting& setting) {
       return or_null(std::atoll(std::string(file_and_line(setting.place).second).c_str()));
     }},
}};

struct ShownVersion {
  std::string_view version;
  const std::vector<std::string_view>& stores;
};

constexpr Fields<ShownVersion, 2> version_fields{{
    {{"version", "string", "version of rlock"}, [](const ShownVersion& shown) -> Json { return shown.version; }},
    {{"stores", "array of string", "stores that this program knows, by their names in -DRLOCK_STORES"},
     [](const ShownVersion& shown) -> Json { return shown.stores; }},
}};

}  // namespace

std::vector<JsonObject> report_objects()
{
  return {
      {"finding", "the result of one check", {"doctor"}, documented(finding_fields)},
      {"measure", "how long one kind of request took", {"bench"}, documented(measure_fields)},
      {"bucket", "one bucket of a histogram", {}, documented(bucket_fields)},
      {"pairs", "how many locks a second the server can do", {"bench"}, documented(pairs_fields)},
      {"rules", "what a user of the server may do", {"acl"}, documented(acl_fields)},
      {"rights", "what a user of a database may do", {"acl"}, documented(sql_fields)},
      {"setting", "one setting, and where it comes from", {"config"}, documented(setting_fields)},
      {"version", "this program", {"version"}, documented(version_fields)},
  };
}

std::string distribution_json(std::string_view measure, const Distribution& times)
{
  return line_of(Measure{.name = measure, .times = times}, measure_fields);
}

std::string pairs_json(double per_second, unsigned connections)
{
  return line_of(Pairs{.per_second = per_second, .connections = connections}, pairs_fields);
}

std::string finding_json(const Finding& finding, std::string_view status, std::string_view server)
{
  return line_of(ShownFinding{.finding = finding, .status = status, .server = server}, finding_fields);
}

std::string acl_json(std::string_view user, const AclRules& rules, std::string_view line)
{
  return line_of(ShownRules{.user = user, .rules = rules, .line = line}, acl_fields);
}

std::string rights_json(std::string_view user, std::string_view sql)
{
  return line_of(ShownSql{.user = user, .sql = sql}, sql_fields);
}

std::string setting_json(const ShownSetting& setting) { return line_of(setting, setting_fields); }

std::string version_json(std::string_view version, const std::vector<std::string_view>& stores)
{
  return line_of(ShownVersion{.version = version, .stores = stores}, version_fields);
}

}  // namespace rlock::cli
