// SPDX-License-Identifier: Apache-2.0
#include "stores/etcd/etcd_checks.h"

#include <poll.h>
#include <algorithm>
#include <array>
#include <charconv>
#include <ctime>
#include "base/text.h"
#include "base/wait.h"
#include "engine/server_findings.h"
#include "net/byte_stream.h"
#include "net/url_parts.h"
#include "stores/etcd/etcd_connection.h"

namespace rlock::etcd {
namespace {

using record::fail;
using record::ok;
using record::warn;

// The patches of 3.MINOR from which on leases are kept, and from which on no answer shows the past.
struct GoodPatches {
  int minor;
  int keeps_leases;
  int shows_present;
};
constexpr int oldest_minor = 4;
constexpr std::array<GoodPatches, 3> good_patches{{{4, 31, 42}, {5, 13, 28}, {6, 0, 9}}};
constexpr std::size_t longest_answer = 16384;
constexpr const char* good_versions = "run etcd 3.6.9 or later, 3.5.28 or 3.4.42";

Finding members(const CheckedFacts& facts)
{
  std::string silent;
  std::size_t answering = 0;
  for (const MemberFacts& each : facts.named) {
    answering += each.status ? 1U : 0U;
    silent += each.status ? "" : (silent.empty() ? "" : "; ") + each.error;
  }
  const std::string found =
      std::to_string(answering) + " of " + std::to_string(facts.named.size()) + " in the URL answer";
  if (!silent.empty()) {
    return warn("members", found + ": " + silent, "start it, or leave it out of the URL");
  }
  if (!facts.voters) {
    return ok("members", found);
  }
  const std::string all = found + ", the cluster has " + std::to_string(*facts.voters);
  if (*facts.voters > facts.named.size()) {
    return warn("members", all, "name them all in the URL, so that the loss of one is harmless");
  }
  if (*facts.voters == 1) {
    return warn("members", all + ": no lock is taken or renewed while it is down", "run three members");
  }
  return ok("members", all);
}

Finding leader(const CheckedFacts& facts)
{
  for (const MemberFacts& each : facts.named) {
    if (each.status && each.status->leader == 0) {
      return fail("leader", printable(each.where) + " knows none", "start a majority of the members");
    }
  }
  return ok("leader", "each member that answers knows one");
}

Finding version(const CheckedFacts& facts)
{
  std::string all;
  for (const MemberFacts& each : facts.named) {
    if (!each.status) {
      continue;
    }
    const std::string found = "etcd " + printable(each.status->version);
    switch (judge_version(each.status->version)) {
      case VersionIs::good: break;
      case VersionIs::too_old: return fail("version", found + " is too old", good_versions);
      case VersionIs::loses_leases:
        return fail("version", found + " may end a lease that was renewed: two jobs may run", good_versions);
      case VersionIs::shows_past:
        return fail("version", found + " may answer with an old state after a pause of a member", good_versions);
      case VersionIs::unknown: return warn("version", found + " is unknown to rlock", good_versions);
    }
    all += all.find(found) == std::string::npos ? (all.empty() ? "" : ", ") + found : "";
  }
  return ok("version", all);
}

Finding alarms(const CheckedFacts& facts)
{
  for (const MemberFacts& each : facts.named) {
    if (each.status && !each.status->errors.empty()) {
      return fail("space", printable(each.where) + ": " + printable(each.status->errors.front()),
                  "see etcdctl alarm list; when the space is used up: compact, defragment, etcdctl alarm disarm");
    }
  }
  return ok("space", "no alarm");
}

Finding clock_of_members(const CheckedFacts& facts) { return record::clients_clock_finding(facts.clock); }

// A member answers HTTP/1.1 on the port for clients as well, with the time of its clock in whole seconds.
std::optional<record::ClockDifference> clock_of(const Endpoint& member, const Clock& clock, const CallLimits& limit)
{
  const std::int64_t before = wall_clock_ms();
  auto stream = ByteStream::open(member, clock, limit);
  if (!stream ||
      !stream->send("GET /version HTTP/1.1\r\nHost: " + member.host + "\r\nConnection: close\r\n\r\n", limit)) {
    return std::nullopt;
  }
  std::string answer;
  while (answer.size() < longest_answer && wait_for(stream->fd(), POLLIN, clock, limit) == Waited::ready &&
         stream->read_into([&](std::string_view bytes) { answer += bytes; })) {
  }
  const auto date = date_in(answer);
  const std::int64_t after = wall_clock_ms();
  constexpr std::int64_t half_second = 500;
  return date ? std::optional(record::ClockDifference{.ahead_ms = *date * 1000 + half_second - (before + after) / 2,
                                                      .unsure_ms = half_second + (after - before + 1) / 2})
              : std::nullopt;
}

Finding encryption(const CheckedFacts& facts)
{
  return record::encryption_finding(facts.uses_tls, facts.is_this_host, "set up TLS at the members, and use etcds://");
}

}  // namespace

VersionIs judge_version(std::string_view version)
{
  std::array<int, 3> numbers{};
  const char* at = version.data();
  const char* const end = at + version.size();
  for (int& number : numbers) {
    const auto [stop, error] = std::from_chars(at, end, number);
    if (error != std::errc{}) {
      return VersionIs::unknown;
    }
    at = stop == end ? end : stop + 1;
  }
  if (numbers[0] != 3 || numbers[1] < oldest_minor) {
    return numbers[0] <= 3 ? VersionIs::too_old : VersionIs::good;
  }
  const auto* const patches = std::ranges::find(good_patches, numbers[1], &GoodPatches::minor);
  if (patches == good_patches.end() || numbers[2] >= patches->shows_present) {
    return VersionIs::good;
  }
  return numbers[2] < patches->keeps_leases ? VersionIs::loses_leases : VersionIs::shows_past;
}

std::optional<std::int64_t> date_in(std::string_view answer)
{
  constexpr std::string_view head = "\r\nDate: ";
  const auto at = answer.find(head);
  if (at == std::string_view::npos) {
    return std::nullopt;
  }
  const std::string text(answer.substr(at + head.size(), answer.substr(at + head.size()).find('\r')));
  std::tm date{};
  const char* const end = ::strptime(text.c_str(), "%a, %d %b %Y %H:%M:%S GMT", &date);
  return end != nullptr && *end == '\0' ? std::optional<std::int64_t>(::timegm(&date)) : std::nullopt;
}

std::vector<Finding> findings_of(const CheckedFacts& facts)
{
  return record::findings_by(facts, version, members, leader, alarms, encryption, clock_of_members);
}

Result<std::vector<Finding>> check_server(const ConnectionSpec& spec, const Clock& clock, const CallLimits& limit)
{
  CheckedFacts facts;
  facts.uses_tls = spec.uses_tls();
  facts.is_this_host = std::ranges::all_of(spec.members, [](const Endpoint& each) { return is_this_host(each.host); });
  std::optional<Error> last;
  std::size_t unasked = spec.members.size();
  for (const Endpoint& member : spec.members) {
    ConnectionSpec one = spec;
    one.members = {member};
    Connection connection(one, clock, std::make_unique<SystemRng>());
    const CallLimits share = share_of(limit, clock.now(), unasked--);
    MemberFacts& found = facts.named.emplace_back(MemberFacts{.where = member.shown()});
    const auto status = connection.status(share);
    if (!status) {
      if (!is_passing(status.error().code)) {
        return status.error();
      }
      last = status.error();
      found.error = status.error().text;
      continue;
    }
    found.status = *status;
    facts.clock = facts.clock ? facts.clock : clock_of(member, clock, share);
    if (const auto all = facts.voters ? Result(std::vector<Member>()) : connection.members(share);
        all && !all->empty()) {
      facts.voters = static_cast<std::size_t>(std::ranges::count(*all, false, &Member::is_learner));
    }
  }
  const bool is_silent =
      std::ranges::none_of(facts.named, [](const MemberFacts& each) { return each.status.has_value(); });
  return is_silent ? Result<std::vector<Finding>>(*last) : findings_of(facts);
}

}  // namespace rlock::etcd
