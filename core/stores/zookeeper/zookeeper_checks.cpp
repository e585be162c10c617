// SPDX-License-Identifier: Apache-2.0
#include "stores/zookeeper/zookeeper_checks.h"

#include <poll.h>
#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <utility>
#include "base/duration.h"
#include "base/text.h"
#include "base/wait.h"
#include "engine/server_findings.h"
#include "stores/zookeeper/zookeeper_layout.h"
#include "stores/zookeeper/zookeeper_native_line.h"

namespace rlock::zookeeper {
namespace {

using record::fail;
using record::ok;
using record::warn;

// The text behind `head` on its line; empty: there is none.
std::string line_after(std::string_view text, std::string_view head)
{
  const auto at = text.find(head);
  if (at == std::string_view::npos) {
    return {};
  }
  text.remove_prefix(at + head.size());
  return printable(text.substr(0, text.find_first_of(",-\n\r ")));
}

// What is wrong with the versions before one. The first row that fits counts.
struct VersionRow {
  std::array<int, 3> from;
  std::array<int, 3> before;
  CheckStatus status;
  std::string_view why;
};
constexpr std::string_view loses_commits = "may lose commits, and so locks, after a change of the leader";
constexpr auto bad_versions = std::to_array<VersionRow>({
    {{0, 0, 0}, {3, 5, 0}, CheckStatus::fail, "is too old"},
    {{0, 0, 0}, {3, 8, 4}, CheckStatus::fail, loses_commits},  // ZOOKEEPER-4785
    {{3, 9, 0}, {3, 9, 2}, CheckStatus::fail, loses_commits},
    {{3, 9, 3}, {3, 9, 4}, CheckStatus::fail, loses_commits},  // ZOOKEEPER-4925
    {{0, 0, 0}, {3, 9, 3}, CheckStatus::warn, "may leave members with different trees (ZOOKEEPER-4712)"},
});
constexpr const char* good_version = "run ZooKeeper 3.9.4 or later";

// "3.8.0"; nullopt: something else.
std::optional<std::array<int, 3>> numbers_in(std::string_view version)
{
  std::array<int, 3> numbers{};
  for (int& number : numbers) {
    const auto [stop, error] = std::from_chars(version.data(), version.data() + version.size(), number);
    if (error != std::errc{}) {
      return std::nullopt;
    }
    version.remove_prefix(static_cast<std::size_t>(stop - version.data()));
    version.remove_prefix(version.empty() ? 0 : 1);
  }
  return numbers;
}

const VersionRow* flaw_of(const std::string& version)
{
  const auto numbers = numbers_in(version);
  const auto* const row = std::ranges::find_if(
      bad_versions, [&](const VersionRow& each) { return numbers && *numbers >= each.from && *numbers < each.before; });
  return row == bad_versions.end() ? nullptr : row;
}

Finding version(const ServerFacts& facts)
{
  std::string found;
  std::optional<Finding> worst;
  for (const MemberFacts& member : facts.members) {
    const VersionRow* const flaw = flaw_of(member.version);
    if (flaw != nullptr && (!worst || flaw->status > worst->status)) {
      worst = Finding{"version", flaw->status,
                      member.where + " runs ZooKeeper " + member.version + ", which " + std::string(flaw->why),
                      good_version};
    }
    found = member.version.empty() ? found : member.version;
  }
  if (worst) {
    return *worst;
  }
  return found.empty() ? record::unknown("version", "the members do not tell", "allow srvr in 4lw.commands.whitelist")
                       : ok("version", "ZooKeeper " + found);
}

Finding members(const ServerFacts& facts)
{
  std::string silent;
  for (const MemberFacts& member : facts.members) {
    silent += member.answers ? "" : (silent.empty() ? "" : ", ") + member.where;
  }
  if (!silent.empty()) {
    return warn("members", "no answer from " + silent, "start the member, or take it out of the URL");
  }
  const bool is_alone = facts.members.front().mode == "standalone";
  if (is_alone) {
    return warn("members", "one server: while it is down, no lock is taken or renewed",
                "run an ensemble of three or five");
  }
  return facts.members.size() == 1
             ? warn("members", "the URL names one member", "name all members: zookeeper://a,b,c")
             : ok("members", "all " + std::to_string(facts.members.size()) + " of the URL answer");
}

Finding session(const ServerFacts& facts)
{
  const std::string found =
      "a session of " + show(facts.session) + " where " + show(facts.asked_for) + " was asked for";
  return facts.session == facts.asked_for ? ok("sessions", "a session of " + show(facts.session))
                                          : warn("sessions", found + ": a lease lasts as long as the session",
                                                 "set minSessionTimeout and maxSessionTimeout of the members");
}

Finding wake_up(const ServerFacts&) { return ok("messages", "a watch wakes a waiter at once"); }

Finding encryption(const ServerFacts& facts)
{
  return record::encryption_finding(facts.uses_tls, facts.is_this_host,
                                    "set up a secureClientPort at the members, and use zookeeper+tls://");
}

Finding lines(const ServerFacts& facts)
{
  std::string locks;
  for (const std::string& lock : facts.mixed_lines) {
    locks.append(locks.empty() ? "" : ", ").append(printable(lock));
  }
  return fail("lock clients",
              "Curator and kazoo do not exclude each other, nor do Curator's InterProcessMutex and "
              "InterProcessReadWriteLock, and clients of two of these take " +
                  locks,
              "let all clients of a lock have one format");
}

Finding clock(const ServerFacts& facts) { return record::clients_clock_finding(facts.clock); }

// The leader writes the time of its clock into a node that is made.
std::optional<record::ClockDifference> clock_in_node(Client& client, const std::string& path, const CallLimits& limit)
{
  const std::int64_t before = wall_clock_ms();
  const auto made = client.ask(create(path, {}, CreateMode::ephemeral, !client.spec().user.empty()), limit);
  const std::int64_t after = wall_clock_ms();
  if (!made || !made->is_ok()) {
    return std::nullopt;
  }
  const auto seen = client.ask(exists(path, false), limit);
  [[maybe_unused]] const auto removed = client.ask(remove(path, any_version), limit);  // else it ends with the session
  return seen && seen->is_ok()
             ? std::optional(record::ClockDifference{.ahead_ms = seen->stat.created_ms - (before + after) / 2,
                                                     .unsure_ms = (after - before + 1) / 2})
             : std::nullopt;
}

// Before the first lock there is no directory of presences.
std::optional<record::ClockDifference> clock_of_leader(Client& client, const CallLimits& limit)
{
  SystemRng rng;
  const std::string name = random_uuid(rng);
  const std::string& chroot = client.spec().chroot;
  const auto difference = clock_in_node(client, Layout(chroot).presence(name), limit);
  return difference ? difference : clock_in_node(client, chroot + "/" + name, limit);
}

bool has_several_formats(const std::vector<std::string>& nodes)
{
  const std::array<record::LineFormat, 3> formats{NativeFormat::curator, NativeFormat::kazoo, curator_read_write};
  const auto there = std::ranges::count_if(formats, [&](record::LineFormat format) {
    return std::ranges::any_of(nodes, [&](const std::string& node) { return is_contender(format, node); });
  });
  return there > 1;
}

// Of the locks that rlock knows to be beside native clients.
Result<std::vector<std::string>> mixed_lines(Client& client, const CallLimits& limit)
{
  const Layout layout(client.spec().chroot);
  ASSIGN_OR_RETURN(const auto records, client.ask(get_children(layout.locks()), limit));
  std::vector<std::string> locks;
  for (const std::string& node : records.children) {
    const auto record = client.ask(get_data(layout.locks() + "/" + node, false), limit);
    const auto lock = text_of_node(node);
    if (!record || !lock || !record::may_be_beside(record->data)) {
      continue;
    }
    const auto line = client.ask(get_children(line_path(client.spec().chroot, *lock)), limit);
    if (line && has_several_formats(line->children)) {
      locks.push_back(*lock);
    }
  }
  return locks;
}

// Asks a member for itself, on a connection of its own.
MemberFacts member_facts(const Endpoint& member, const Clock& clock, const CallLimits& limit)
{
  MemberFacts facts{.where = member.shown(), .version = {}, .mode = {}};
  auto stream = ByteStream::open(member, clock, limit);
  if (!stream || !stream->send("srvr", limit)) {
    return facts;
  }
  facts.answers = true;
  std::string text;
  while (text.size() < longest_request && wait_for(stream->fd(), POLLIN, clock, limit) == Waited::ready &&
         stream->read_into([&](std::string_view bytes) { text += bytes; })) {
  }
  read_srvr(text, facts);
  return facts;
}

}  // namespace

void read_srvr(std::string_view text, MemberFacts& facts)
{
  facts.version = line_after(text, "Zookeeper version: ");
  facts.mode = line_after(text, "Mode: ");
  if (text.find("not currently serving requests") != std::string_view::npos) {
    facts.answers = false;
  }
}

std::vector<Finding> findings_of(const ServerFacts& facts)
{
  std::vector<Finding> findings = record::findings_by(facts, version, members, session, wake_up, encryption, clock);
  if (!facts.mixed_lines.empty()) {
    findings.push_back(lines(facts));
  }
  return findings;
}

Result<std::vector<Finding>> check_server(Client& client, const Clock& clock, const CallLimits& limit)
{
  RETURN_IF_ERROR(client.ask(sync("/"), limit));
  const ConnectionSpec& spec = client.spec();
  ServerFacts facts{.members = {},
                    .session = client.term().length,
                    .asked_for = client.asked_for(),
                    .uses_tls = spec.uses_tls,
                    .is_this_host = spec.is_this_host};
  ASSIGN_OR_RETURN(auto mixed, mixed_lines(client, limit));
  facts.mixed_lines = std::move(mixed);
  facts.clock = clock_of_leader(client, limit);
  std::size_t unasked = spec.members.size();
  for (const Endpoint& member : spec.members) {
    facts.members.push_back(member_facts(member, clock, share_of(limit, clock.now(), unasked-- + 1)));
  }
  return findings_of(facts);
}

// The first two lines make what is missing; each node that rlock makes then has the rights of its user.
std::string rights_lines(const ConnectionSpec& spec, std::string_view user)
{
  const Layout layout(spec.chroot);
  const std::string login(user);
  std::string lines = "addauth digest " + login + ":PASSWORD\n";
  for (const std::string& path : layout.directories()) {
    lines.append("create ").append(path).append("\n");
    if (path.starts_with(layout.root())) {
      lines.append("setAcl ").append(path).append(" auth:").append(login).append(":cdrwa\n");
    }
  }
  return lines;
}

}  // namespace rlock::zookeeper
