// SPDX-License-Identifier: Apache-2.0
// What servers tell about themselves and about other servers. Input: a digit for the question, and the text of the answer; for
// arrays in RESP.
#include "cli/output/json.h"
#include "doctor/facts.h"
#include "doctor/rules.h"
#include "fuzz/fuzzer.h"
#include "fuzz/recorded_server.h"
#include "fuzz/shown.h"
#include "redis/codec.h"
#include "redis/sentinel.h"
#include "redis/slot_map.h"

#include <array>

namespace rlock::test {
namespace {

const HostPort asked{.host = "db1", .port = 7000};

std::optional<Reply> reply_in(std::string_view bytes)
{
  const auto replies = replies_in(bytes);
  return replies.empty() ? std::nullopt : std::optional(replies.front());
}

void read_slots(std::string_view bytes)
{
  const auto reply = reply_in(bytes);
  if (!reply) {
    return;
  }
  SlotMap map(*reply, asked);
  for (const HostPort& owner : map.owners()) {
    promise(std::find(map.nodes().begin(), map.nodes().end(), owner) != map.nodes().end(), "an owner is a node");
  }
  for (const unsigned slot : {0U, 1U, slot_count - 1}) {
    const auto owner = map.owner(slot);
    promise(!owner || map.owners().contains(*owner), "a slot has an owner of the map");
  }
  map.moved(1, asked);
  promise(map.owner(1) == asked, "a slot that moved is where it moved to");
}

void read_redirection(std::string_view bytes)
{
  const Reply reply = Reply::error(std::string(bytes));
  const auto to = redirection_in(reply, asked);
  promise(!to || to->slot < slot_count, "a redirection has a slot");
  promise(to || bytes != "MOVED 1 db2:7000", "a redirection is understood");
}

void read_error(std::string_view bytes)
{
  const Error error = error_from_reply(bytes, "redis://db1:6379");
  promise_error(error);
  promise(error.script_line >= 0, "a line of a script is a line");
  is_unknown_script(bytes);
}

void read_address(std::string_view bytes)
{
  if (const auto reply = reply_in(bytes)) {
    const auto at = master_address_in(*reply);
    promise(!at || at->port > 0, "an address has a port");
  }
}

void promise_findings(const std::vector<Finding>& findings)
{
  for (const Finding& finding : findings) {
    promise_one_line(finding.found);
    promise_clean(finding.advice);
    promise_json(cli::finding_json(finding, "ok", "redis://db1"));
  }
}

// As INFO, as CONFIG GET and as CLUSTER INFO; as the words of a server that refuses.
void read_facts(std::string_view bytes)
{
  Facts facts;
  facts.server = "redis://db1";
  facts.host = "db1";
  facts.info = Fields::of_info(bytes);
  facts.config = facts.info;
  facts.cluster = ClusterFacts{.info = facts.info, .owners = std::vector<SlotOwner>{{asked, 0}}};
  promise_findings(check_server(facts, Millis{30'000}));
  const std::array<Facts, 3> quorum{facts, facts, facts};
  promise_findings(check_quorum(quorum));

  const Error refused = error_from_reply(bytes.substr(0, bytes.find('\n')), "redis://db1");
  facts.info = not_asked;
  facts.probe = refused;
  facts.failure = refused;
  facts.sentinels = SentinelFacts{
      .views = {{.where = "db1:26379", .answered = refused, .master = std::nullopt, .can_fail_over = refused}},
      .masters = {{HostPort{.host = std::string(bytes.substr(0, 80)), .port = 1}, refused}}};
  promise_findings(check_server(facts, Millis{30'000}));
}

// All that the doctor asks, and what it makes of it.
void read_everything(std::string_view bytes)
{
  const std::vector<Reply> replies = replies_in(bytes);
  RecordedServer server(replies);
  RecordedServer anonymous(replies);
  OnesRng rng;
  const Facts facts = collect_facts(server, anonymous, *parse_url("redis://db1"),
                                    {.name = *LockName::parse("stock"), .ttl = Millis{30'000}, .timeout = Millis{5000}},
                                    standing_clock, rng);
  promise_findings(check_server(facts, Millis{30'000}));
}

}  // namespace

void fuzz_servers(std::string_view bytes)
{
  constexpr std::array questions{read_slots, read_redirection, read_error, read_address, read_facts, read_everything};
  Input input(bytes);
  questions[input.choice(questions.size())](input.rest());
}

}  // namespace rlock::test
