// SPDX-License-Identifier: Apache-2.0
// The JSON objects of bench, doctor, acl and version, and the lines of --log-format json.
#include "cli/output/json.h"
#include "cli/output/json_row.h"

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

constexpr Fields<std::string_view, 1> version_fields{{
    {{"version", "string", "version of rlock"}, [](const std::string_view& version) -> Json { return version; }},
}};

// json_line of base/log.h prints these.
constexpr std::array log_fields{
    JsonField{"time", "time", "when rlock wrote the line"},
    JsonField{"level", "string", "error, notice or detail"},
    JsonField{"event", "string or null", "what the line is about, such as waiting, busy, acquired or lost"},
    JsonField{"key", "string or null", "name of the lock"},
    JsonField{"message", "string", "the line as text"},
    JsonField{"holder", "string or null", "the holder of a lock that the caller does not have"},
    JsonField{"place", "integer or null", "place of the caller in the queue"},
    JsonField{"fence", "integer or null", "fencing number of the caller's hold"},
    JsonField{"exit_code", "integer or null", "the exit code with which rlock ends after this line"},
};

}  // namespace

std::vector<JsonObject> report_objects()
{
  return {
      {"finding", "the result of one check", {"doctor"}, documented(finding_fields)},
      {"measure", "how long one kind of request took", {"bench"}, documented(measure_fields)},
      {"bucket", "one bucket of a histogram", {}, documented(bucket_fields)},
      {"pairs", "how many locks a second the server can do", {"bench"}, documented(pairs_fields)},
      {"rules", "what a user of the server may do", {"acl"}, documented(acl_fields)},
      {"version", "this program", {"version"}, documented(version_fields)},
      {"log line",
       "a line on stderr, with --log-format json",
       {"run", "once", "flock", "acquire"},
       {log_fields.begin(), log_fields.end()}},
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

std::string version_json(std::string_view version) { return line_of(version, version_fields); }

}  // namespace rlock::cli
