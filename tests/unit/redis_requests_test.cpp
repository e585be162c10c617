// SPDX-License-Identifier: Apache-2.0
// The requests that each verb sends to Redis, for each kind of lock, byte for byte. Clients of other versions and the scripts that
// a server already has rely on them. RLOCK_WRITE_REQUESTS=1 writes the file with the requests anew.
#include "base/text.h"
#include "lock/kept_runs.h"
#include "lua/scripts.h"
#include "redis/redis_store.h"

#include "support/paths.h"
#include "support/stepped_clock.h"
#include "support/test.h"
#include "support/text_file.h"

#include <cstdlib>

using namespace rlock::test;
using namespace std::string_literals;

namespace {

using Words = std::vector<std::string>;

const std::filesystem::path expected_file = std::filesystem::path(RLOCK_SOURCE_DIR) / "tests/unit/redis_requests.txt";

// A script by its name, because its SHA-1 changes with its text.
std::string shown(const std::string& word)
{
  const auto* const script = std::ranges::find_if(scripts::all, [&](const Script* each) { return each->sha1 == word; });
  if (script != std::end(scripts::all)) {
    return std::string((*script)->name);
  }
  return printable(word);
}

// Notes each request, and answers by what `answers` says of a script; nothing else knows what the server does.
class Recorder final : public Transport {
 public:
  Recorder(std::string& lines, bool is_cluster) : m_lines(lines), m_is_cluster(is_cluster) {}

  Result<Reply> call(std::string_view route_key, std::span<const std::string_view> argv, const CallLimits&) override
  {
    m_lines += "  " + std::string(route_key) + ":";
    for (const std::string_view word : argv) {
      m_lines += " " + shown(std::string(word)) + " |";
    }
    m_lines += "\n";
    return answer(Words(argv.begin(), argv.end()));
  }
  Result<Reply> follow_up(std::string_view route_key, std::span<const std::string_view> argv,
                          const CallLimits& limit) override
  {
    return call(route_key, argv, limit);
  }
  Result<Subscription> subscribe(std::span<const std::string_view>, const CallLimits&) override
  {
    return Error{ErrorCode::internal, "not asked"};
  }
  void drop_connection() override {}
  [[nodiscard]] bool is_cluster() const override { return m_is_cluster; }

 private:
  // A lock of the kind that its name tells, with a run in its log; a list of runs that must be compacted.
  static Reply answer(const Words& words)
  {
    const std::string script = shown(words.at(1));
    const std::string log = "1700000000000000\0acquired\0o:1\0info\0history=9000000000\nhost=h"s;
    const std::string end = "1700000001.000000\0released\0o:1\0owner\0o:1\0exit\0000"s;
    if (words.front() == "SCAN") {
      return Reply::array({Reply::of("0"), Reply::array({Reply::of("rlock:events:{stock}")})});
    }
    if (words.front() == "LRANGE") {
      return Reply::array({Reply::of(log), Reply::of(end)});
    }
    if (script == "look_through") {
      return Reply::array({Reply::of("0"), Reply::of("stock")});
    }
    if (script == "plain_inspect" && words.at(3).starts_with("permits")) {
      return Reply::array({Reply::of("other"), Reply::of("permits")});
    }
    if (script.ends_with("_inspect")) {
      const Reply entries = Reply::array({Reply::of(log), Reply::of(end)});
      return Reply::array({Reply::of("known"), Reply::of("17"), Reply::of(0), Reply::of(3), Reply::of(0),
                           Reply::array({}), Reply::array({}), Reply::of(0), Reply::of(1), Reply{}, Reply::of(-2),
                           Reply::of("1700000002000000"), entries});
    }
    if (script == "runs" && words.at(4) == "read") {
      return Reply::array(
          {Reply::of(encode_runs(std::vector<PastRun>{{.owner = Owner::of("old"), .start_ms = 1}}).front())});
    }
    return script == "runs"     ? Reply::of(1'000'000)
           : script == "forget" ? Reply::array({Reply::of(1), Reply::of(1)})
                                : Reply{};
  }

  std::string& m_lines;
  const bool m_is_cluster;
};

const HolderInfo who{.host = "web1",
                     .pid = 71,
                     .user = "ann",
                     .command = "./job.sh a",
                     .label = "l",
                     .since_ms = 1'700'000'000'000,
                     .lease = 30s,
                     .automatic = true};

struct Recording {
  std::string lines;
  SteppedClock clock;
  RedisStore store;
  const Owner owner = Owner::of("8743c9c0-0795-4907-87fd-6c719a6b4586:1");
  const Hold nested = Hold::of_token(owner.text() + "/nested:2");
  const CallLimits limit{far_future, StopToken::never()};
  const PerAnswer limits{.clock = clock, .timeout = 5s, .whole = {far_future, StopToken::never()}};

  explicit Recording(RightsCheck check, bool is_cluster = false)
      : store(std::make_unique<Recorder>(lines, is_cluster), clock, check)
  {
  }

  template <typename Answer>
  void note(const std::string& title, Answer ask)
  {
    lines += title + "\n";
    [[maybe_unused]] const auto answer = ask();
  }

  static LockSpec request(const std::string& name, const LockKind& kind)
  {
    return {.name = *LockName::parse(name), .kind = kind, .ttl = 30s, .who = who, .once = {}};
  }

  void acquires(const std::string& of, const LockSpec& plain)
  {
    const auto acquire = [&](const std::string& how, const LockSpec& spec, const AcquireOptions& options) {
      note("acquire " + how + ", " + of, [&] { return store.acquire(spec, owner, options, limit); });
    };
    acquire("try", plain, {});
    acquire("wait", plain, {.queues = true, .ticket = 1'700'000'000'000'001});
    LockSpec other = plain;
    other.who.latest = true;
    acquire("latest", other, {.queues = true});
    other.who = who;
    other.who.freeze = "moving";
    other.who.history = 24h;
    acquire("freeze", other, {.queues = true});
    other = plain;
    other.once = 10min;
    acquire("once", other, {});
    other.again = true;
    acquire("once --again", other, {});
    other.again = false;
    other.period = Period{.begin_ms = 1'700'000'000'000, .next_ms = 1'700'003'600'000, .length = 1h};
    acquire("once --per", other, {.queues = true});
    note("reenter, " + of, [&] { return store.reenter(plain, nested, limit); });
    note("reenter once --per, " + of, [&] { return store.reenter(other, nested, limit); });
  }

  void renewals(const std::string& of, const LockSpec& spec)
  {
    note("renew, " + of, [&] { return store.renew(spec, owner, {}, limit); });
    note("check, " + of, [&] { return store.renew(spec, owner, {.only_checks = true}, limit); });
    note("confirm, " + of, [&] { return store.renew(spec, owner, {.confirms = true}, limit); });
    note("renew while stopping, " + of, [&] { return store.renew(spec, owner, {.stopping = true}, limit); });
    note("renew a hold, " + of, [&] { return store.renew_hold(spec, nested, {}, limit); });
    note("raise, " + of, [&] { return store.raise_fence(spec, owner, 1'700'000'000'000'007, limit); });
  }

  void releases(const std::string& of, const LockSpec& plain)
  {
    const auto release = [&](const std::string& how, const LockSpec& spec, const Hold& hold,
                             const ReleaseOptions& options) {
      note("release " + how + ", " + of, [&] { return store.release(spec, hold, options, limit); });
    };
    const Hold outer(owner);
    LockSpec spec = plain;
    release("", spec, outer, {});
    release("nested, with a result", spec, nested,
            {.result = {.exit_code = 3, .outcome = Outcome::failed, .fence = 9}});
    release("of an attempt", spec, outer, {.announced = false});
    release("--min-hold", spec, outer, {.keep = 5s, .result = {.exit_code = 0}});
    release("of a lost lock", spec, outer, {.result = {.outcome = Outcome::lost}});
    release("of a lost nested hold", spec, nested, {.result = {.outcome = Outcome::lost}});
    release("late", spec, outer, {.result = {.exit_code = 0}, .late = true});
    spec.once = 10min;
    spec.who.history = 24h;
    release("once", spec, outer, {.succeeded = true, .ran = 7s, .result = {.exit_code = 0, .attempt = 2}});
    const LockSpec* const both[] = {&spec, &plain};
    note("release each, " + of, [&] { return store.release_each(both, owner, limit).size(); });
  }

  void others(const std::string& of, const LockSpec& spec)
  {
    const LockName& name = spec.name;
    note("skip, " + of, [&] { return store.note_skipped(spec, owner, {.waited = 1500ms}, limit); });
    note("skip 127, " + of, [&] { return store.note_skipped(spec, owner, {.waited = 0ms, .exit_code = 127}, limit); });
    note("is queued, " + of, [&] { return store.is_queued(spec, owner, limit); });
    for (const ForceStep step :
         {ForceStep::ask, ForceStep::join, ForceStep::look, ForceStep::revoke, ForceStep::take}) {
      const ForceCall call{.name = name, .kind = spec.kind, .owner = owner, .by = "bob@db1 (pid 9)", .stands_for = 12s};
      note("force, " + of, [&] { return store.force(step, call, limit); });
    }
  }

  void operators(const std::string& of, const LockName& name)
  {
    note("inspect, " + of, [&] { return store.inspect(name, limit); });
    note("states, " + of, [&] { return store.states_of({&name, 1}, limits); });
    note("history, " + of, [&] { return store.past_runs({&name, 1}, LogPart::all, limits); });
    note("last run, " + of, [&] { return store.past_runs({&name, 1}, LogPart::end, limits); });
    note("keep runs, " + of, [&] { return store.keep_runs(name, 720h, limits); });
    note("forget runs, " + of, [&] { return store.forget_runs(name, limit); });
    note("forget, " + of, [&] { return store.forget_success(name, limit); });
    note("erase, " + of, [&] { return store.erase(name, limit); });
  }
};

std::string all_requests()
{
  std::string all;
  const std::vector<std::pair<std::string, LockKind>> kinds{{"plain", Plain{}},
                                                            {"reader", Reader{}},
                                                            {"writer", Writer{}},
                                                            {"permits", Permits{3}},
                                                            {"string", StringLock{}}};
  for (const auto& [label, kind] : kinds) {
    Recording recorded(RightsCheck::none);
    const LockSpec spec = Recording::request("stock", kind);
    recorded.acquires(label, spec);
    recorded.renewals(label, spec);
    recorded.releases(label, spec);
    recorded.others(label, spec);
    recorded.renewals(label + " with a tag", Recording::request("{eu}:1", kind));
    all += recorded.lines;
  }
  Recording checked(RightsCheck::before_grant);
  checked.acquires("with a check of the rights", Recording::request("stock", Plain{}));
  Recording cluster(RightsCheck::none, true);
  cluster.renewals("in a cluster", Recording::request("stock", Reader{}));
  cluster.operators("in a cluster", *LockName::parse("stock"));
  Recording shown(RightsCheck::none);
  for (const std::string name : {"{eu}:1", "permits"}) {
    shown.operators(name, *LockName::parse(name));
  }
  shown.note("list", [&] { return shown.store.list("st*", shown.limits); });
  shown.note("known", [&] { return shown.store.find_known("*", shown.limits); });
  shown.note("marker", [&] { return shown.store.marker({}, shown.limit); });
  shown.note("marker of a lock", [&] { return shown.store.marker({.ttl = 30s, .counts_since = 17}, shown.limit); });
  LockSpec replicated = Recording::request("stock", Plain{});
  replicated.sync = {.replicas = 2, .within = 100ms};
  shown.note("sync", [&] { return shown.store.await_replicas(replicated, shown.limit); });
  LockSpec bounded = Recording::request("stock", Plain{});
  bounded.max_waiting = 3;
  for (const bool queues : {false, true}) {
    shown.note("--max-waiting",
               [&] { return shown.store.acquire(bounded, shown.owner, {.queues = queues}, shown.limit); });
  }
  bounded.max_waiting.reset();
  bounded.who.priority = -5;
  shown.note("--priority", [&] { return shown.store.acquire(bounded, shown.owner, {.queues = true}, shown.limit); });
  return all + checked.lines + cluster.lines + shown.lines;
}

}  // namespace

TEST_CASE("requests to Redis: the same bytes as ever")
{
  const std::string requests = all_requests();
  if (std::getenv("RLOCK_WRITE_REQUESTS") != nullptr) {
    std::ofstream(expected_file, std::ios::binary) << requests;
  }
  const auto known = lines_of(text_of(expected_file));
  const auto sent = lines_of(requests);
  REQUIRE(known.size() == sent.size());
  for (std::size_t i = 0; i < sent.size(); ++i) {
    CAPTURE(i + 1);
    CHECK(sent[i] == known[i]);
  }
}
