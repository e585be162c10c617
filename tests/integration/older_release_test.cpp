// SPDX-License-Identifier: Apache-2.0
// The built rlock beside an older one, which RLOCK_TEST_OLDER names, on one server: each reads the records of the other, respects its
// holders and waits in one line with its waiters.
#include "support/integration.h"
#include "support/job_lines.h"
#include "support/json.h"
#include "support/presences.h"
#include "support/relay.h"
#include "support/skip.h"

#include <array>
#include <atomic>
#include <cstdlib>
#include <span>

using namespace rlock::test;

namespace {

constexpr int is_busy = 75;

// One of the two programs, with the server of the test case.
class Program {
 public:
  Program(std::string path, std::string url) : m_path(std::move(path)), m_url(std::move(url)) {}

  [[nodiscard]] const std::string& url() const { return m_url; }
  [[nodiscard]] Program at(const std::string& url) const { return {m_path, url}; }
  // For the job of another run, whose environment names the server.
  [[nodiscard]] Words nested(const Words& words) const { return joined({m_path}, words); }

  [[nodiscard]] Process start(const Words& words) const
  {
    Words argv = rlock_argv(with_url(m_url, words));
    argv.front() = m_path;
    return Process(argv);
  }
  [[nodiscard]] Finished run(const Words& words) const
  {
    Process process = start(words);
    const Exit exit = process.wait(60s);
    return {.code = exit.code, .signal = exit.signal, .out = process.out(), .err = process.err()};
  }
  [[nodiscard]] int code_of(const Words& words) const { return run(words).code; }
  // Tries to take the lock for a moment.
  [[nodiscard]] int try_run(const Words& options = {}) const
  {
    return code_of(joined({"run", "-n", "-k", "k"}, with_job(options, {"true"})));
  }
  [[nodiscard]] Process start_run(const Words& options, const Words& job) const
  {
    return start(joined({"run", "-k", "k"}, with_job(options, job)));
  }
  // A run whose job has begun.
  [[nodiscard]] Process hold(const Words& options, const std::string& job) const
  {
    const auto begun = make_temp_dir("hold") / "begun";
    Process holder = start_run(options, shell("touch " + begun.string() + "; " + job));
    wait_until([&] { return std::filesystem::exists(begun); }, "the job has begun");
    return holder;
  }
  // A run that is in line at this place, whose job notes its name.
  [[nodiscard]] Process wait_in_line(int place, const std::string& name, const Words& options = {}) const
  {
    Process waiter = start_run(options, shell(noting(name)));
    await_place(m_url, place);
    return waiter;
  }

 private:
  std::string m_path;
  std::string m_url;
};

// A job that lives until it is killed, and a command that succeeds when it is dead.
struct LongJob {
  std::string file = (make_temp_dir("job") / "alive").string();
  [[nodiscard]] std::string line() const { return "exec flock " + file + " sleep 60"; }
  [[nodiscard]] Words when_dead(const Words& options = {}) const
  {
    return joined({"run", "-k", "k"}, with_job(options, {"flock", "-n", file, "true"}));
  }
};

std::filesystem::path new_file(const std::string& name) { return make_temp_dir("file") / name; }

Json status_by(const Program& program) { return Json::parse(program.run({"status", "--json", "k"}).out); }

// What each program tells of the lock is the same, but for the time that is left of its lease.
void expect_same_status(const Program& one, const Program& other)
{
  CHECK(status_by(one).with("ttl_ms", nullptr) == status_by(other).with("ttl_ms", nullptr));
}

void busy_and_handed_over(const Program& one, const Program& other)
{
  const auto go = new_file("go");
  Process holder = one.hold({"--label", "the first"}, until_exists(go));
  CHECK(other.try_run() == is_busy);
  CHECK(has(other.run({"status", "k"}).out, "the first"));
  expect_same_status(one, other);
  Process waiter = other.start_run({}, {"true"});
  create(go);
  CHECK(holder.wait() == success);
  CHECK(waiter.wait() == success);
}

void one_line(const Program& one, const Program& other)
{
  const auto go = new_file("go");
  Process holder = one.hold({}, until_exists(go));
  std::vector<Process> waiters;
  for (int place = 1; place <= 6; ++place) {
    const Program& program = place % 2 == 0 ? one : other;
    waiters.push_back(program.wait_in_line(place, std::to_string(place)));
  }
  expect_same_status(one, other);
  create(go);
  CHECK(holder.wait() == success);
  expect_ends(waiters, 30s);
  CHECK(order() == "1\n2\n3\n4\n5\n6\n");
}

void dead_waiters(const Program& one, const Program& other)
{
  const auto go = new_file("go");
  const Words briefly{"--ttl", ttl_of_silent()};
  Process holder = one.hold({}, until_exists(go));
  std::vector<Process> waiters;
  for (int place = 1; place <= 4; ++place) {
    const Program& program = place % 2 == 0 ? one : other;
    waiters.push_back(program.wait_in_line(place, std::to_string(place), briefly));
  }
  for (const std::size_t at : {0U, 1U}) {
    waiters[at].signal(SIGKILL);
    CHECK(waiters[at].wait() == died_of(SIGKILL));
  }
  create(go);
  CHECK(holder.wait() == success);
  CHECK(waiters[2].wait(30s) == success);
  CHECK(waiters[3].wait(30s) == success);
}

void latest(const Program& one, const Program& other)
{
  const auto go = new_file("go");
  Process holder = one.hold({}, until_exists(go));
  Process first = one.wait_in_line(1, "first", {"--latest"});
  Process second = other.wait_in_line(1, "second", {"--latest"});
  expect_end(first, exited(is_busy), {err_has("a newer run has taken the place of this one")});
  Process third = one.wait_in_line(1, "third", {"--latest"});
  CHECK(second.wait() == exited(is_busy));
  create(go);
  CHECK(holder.wait() == success);
  CHECK(third.wait() == success);
  CHECK(order() == "third\n");
}

void permits(const Program& one, const Program& other)
{
  const auto go = new_file("go");
  const Words two{"--permits", "2"};
  std::vector<Process> all;
  all.push_back(one.hold(two, until_exists(go)));
  all.push_back(other.hold(two, until_exists(go)));
  CHECK(one.try_run(two) == is_busy);
  CHECK(other.try_run(two) == is_busy);
  CHECK(other.code_of({"status", "k"}) == 0);
  expect_same_status(one, other);
  all.push_back(one.wait_in_line(1, "1", two));
  all.push_back(other.wait_in_line(2, "2", two));
  create(go);
  expect_ends(all);
  CHECK(other.try_run({"--permits", "2"}) == 0);
}

void readers_and_writer(const Program& one, const Program& other)
{
  const auto go = new_file("go");
  std::vector<Process> all;
  all.push_back(one.hold({"-s"}, until_exists(go)));
  all.push_back(other.hold({"-s"}, until_exists(go)));
  CHECK(one.try_run({"-x"}) == is_busy);
  CHECK(other.try_run({"-x"}) == is_busy);
  expect_same_status(one, other);
  all.push_back(one.wait_in_line(1, "writer", {"-x"}));
  all.push_back(other.wait_in_line(2, "reader", {"-s"}));
  create(go);
  expect_ends(all);
  CHECK(order() == "writer\nreader\n");
}

// Beside the lock clients of the store.
void native_format(const Program& one, const Program& other)
{
  const std::string& url = one.url();
  const bool is_redis = topology_kind() != TopologyKind::database;
  const std::string format = is_redis                        ? "string"
                             : url.starts_with("etcd:")      ? "etcd"
                             : url.starts_with("zookeeper:") ? "curator"
                                                             : "";
  if (format.empty()) {  // rlock shares no lock client of this store
    return;
  }
  const Words beside{"--format", format};
  const auto go = new_file("go");
  std::vector<Process> all;
  all.push_back(one.hold(beside, until_exists(go)));
  CHECK(other.try_run(beside) == is_busy);
  all.push_back(other.wait_in_line(1, "1", beside));
  all.push_back(one.wait_in_line(2, "2", beside));
  expect_same_status(one, other);
  create(go);
  expect_ends(all);
  CHECK(order() == "1\n2\n");
}

void the_other_kind_waits(const Program& one, const Program& other)
{
  const auto go = new_file("go");
  Process holder = one.hold({}, until_exists(go));
  CHECK(other.try_run({"-x"}) == is_busy);
  Process waiter = other.start_run({"-x"}, {"true"});
  create(go);
  CHECK(holder.wait() == success);
  CHECK(waiter.wait() == success);
}

void nested(const Program& one, const Program& other)
{
  const Words inner = other.nested({"run", "-n", "-k", "k", "--", "sh", "-c", "\"$@\"", "sh"});
  const Words checks = one.nested({"check"});
  CHECK(one.code_of(joined({"run", "-k", "k", "--"}, joined(inner, checks))) == 0);
  const std::string afterwards = "\"$0\" run -n -k k -- true && \"$0\" check && \"$1\" check";
  const Words both = joined(other.nested({}), one.nested({}));
  CHECK(one.code_of(joined({"run", "-k", "k", "--", "sh", "-c", afterwards}, both)) == 0);
  CHECK(other.try_run() == 0);
}

void token(const Program& one, const Program& other)
{
  const Finished taken = one.run({"acquire", "-k", "k", "--lease", "60s"});
  CHECK_MESSAGE(taken.code == 0, taken.err);
  const std::string token = first_line(taken.out);
  CHECK(other.try_run() == is_busy);
  CHECK(other.code_of({"check", "-k", "k", "--token", token}) == 0);
  CHECK(other.code_of({"check", "-k", "k", "--token", "another:1"}) == 1);
  CHECK(other.code_of({"renew", "-k", "k", "--token", token, "--lease", "120s"}) == 0);
  CHECK(one.code_of({"check", "-k", "k", "--token", token}) == 0);
  CHECK(other.code_of({"release", "-k", "k", "--token", token}) == 0);
  CHECK(one.code_of({"check", "-k", "k", "--token", token}) == 1);
  CHECK(one.try_run() == 0);
}

void keeper(const Program& one, const Program& other)
{
  Process script({"sleep", "60"});
  const Words acquire{"acquire", "-k", "k", "--pid", std::to_string(script.pid())};
  const std::string released = first_line(one.run(acquire).out);
  CHECK(other.try_run() == is_busy);
  CHECK(other.code_of({"check", "-k", "k", "--token", released}) == 0);
  CHECK(other.code_of({"release", "-k", "k", "--token", released}) == 0);
  CHECK(other.try_run() == 0);
  CHECK(script.running());

  const LongJob job;
  Process second({"flock", "-F", job.file, "sleep", "60"});
  CHECK(one.code_of({"acquire", "-k", "k", "--pid", std::to_string(second.pid())}) == 0);
  CHECK(other.code_of({"force-unlock", "-k", "k", "--yes"}) == 0);
  CHECK(other.code_of(job.when_dead({"-n"})) == 0);
  CHECK(second.wait() == died_of(SIGTERM));
}

void forced(const Program& one, const Program& other)
{
  const LongJob job;
  Process holder = one.hold({}, job.line());
  CHECK(other.code_of({"force-unlock", "-k", "k", "--yes", "--reason", "a test"}) == 0);
  CHECK(other.code_of(job.when_dead({"-n"})) == 0);
  expect_end(holder, exited(121), {err_has("a test")});
}

void revoked(const Program& one, const Program& other)
{
  const LongJob job;
  Process holder = one.hold({"--ttl", "3s"}, job.line());
  stop_process(holder.pid());
  CHECK(other.code_of({"force-unlock", "-k", "k", "--yes", "--grace", "200ms"}) == 0);
  CHECK(other.code_of(job.when_dead({"-n"})) == 0);
  holder.signal(SIGCONT);
  CHECK(holder.wait() == exited(121));
}

void cancelled(const Program& one, const Program& other)
{
  const LongJob job;
  Process holder = one.hold({}, job.line());
  CHECK(other.code_of(job.when_dead({"--cancel-in-progress"})) == 0);
  CHECK(holder.wait() == exited(121));
}

void killed(const Program& one, const Program& other)
{
  const LongJob job;
  Process holder = one.hold({"--ttl", "3s"}, job.line());
  Process waiter = other.start(job.when_dead());
  holder.signal(SIGKILL);
  CHECK(waiter.wait() == success);
  CHECK(other.try_run() == 0);
}

void deleted(const Program& one, const Program& other)
{
  const LongJob job;
  Process holder = one.hold({"--ttl", "30s"}, job.line());
  CHECK(other.code_of({"force-unlock", "-k", "k", "--yes", "--now"}) == 0);
  CHECK(other.try_run() == 0);
  CHECK(holder.wait() == exited(121));
}

void once_on_both(const Program& one, const Program& other)
{
  const auto once = [](const std::string& name, const std::string& job) {
    return Words{"once", "-q", "-k", "k", "--for", "1h", "--", "sh", "-c", noting(name) + "; " + job};
  };
  const auto both = [&](const std::string& name, int code) {
    const auto go = new_file("go");
    std::vector<Process> all;
    all.push_back(one.start(once(name, until_exists(go) + "; exit " + std::to_string(code))));
    wait_until([&] { return has(order(), name); }, "the job has begun");
    all.push_back(other.start(once("other", "true")));
    await_place(one.url(), 1);
    create(go);
    expect_ends(all, 30s, exited(code));
  };
  if (is_quorum_topology()) {  // without a line a failure is not shared
    CHECK(one.code_of(once("fails", "true")) == 0);
  } else {
    both("fails", 7);
    both("succeeds", 0);
  }
  CHECK(other.code_of(once("other", "true")) == 0);
  CHECK(status_by(one).at("once").at("at") == status_by(other).at("once").at("at"));
  CHECK(other.code_of({"forget", "k"}) == 0);
  CHECK(one.code_of(once("again", "true")) == 0);
  CHECK(order() == (is_quorum_topology() ? "fails\nagain\n" : "fails\nsucceeds\nagain\n"));
}

void freeze(const Program& one, const Program& other)
{
  CHECK(one.code_of({"freeze", "k", "--for", "1h", "--reason", "new disks"}) == 0);
  CHECK(other.try_run() == is_busy);
  CHECK(has(other.run({"status", "k"}).out, "new disks"));
  expect_same_status(one, other);
  CHECK(other.code_of({"thaw", "k"}) == 0);
  CHECK(one.try_run() == 0);
}

void freeze_waits_first(const Program& one, const Program& other)
{
  const auto go = new_file("go");
  Process holder = one.hold({}, until_exists(go));
  Process waiter = one.wait_in_line(1, "waiter");
  Process freeze = other.start({"freeze", "k", "--for", "1h", "--reason", "new disks"});
  await_place(one.url(), 2);
  create(go);
  CHECK(holder.wait() == success);
  CHECK(freeze.wait() == success);
  CHECK(order().empty());
  CHECK(one.code_of({"thaw", "k"}) == 0);
  CHECK(waiter.wait() == success);
}

void history(const Program& one, const Program& other)
{
  const Words keep{"--history", "30d"};
  for (const Program* program : {&one, &other}) {
    CHECK(program->code_of(joined({"run", "-k", "k"}, with_job(keep, {"true"}))) == 0);
    CHECK(program->code_of(joined({"run", "-k", "k"}, with_job(keep, {"sh", "-c", "exit 7"}))) == 7);
    Process holder = program->hold(keep, "exec sleep 60");
    CHECK(one.try_run(keep) == is_busy);
    CHECK(other.try_run(keep) == is_busy);
    CHECK(one.code_of({"force-unlock", "-k", "k", "--yes"}) == 0);
    CHECK(holder.wait() == exited(121));
  }
  for (const Words& words : {Words{"history", "--json", "k"}, Words{"list", "--all", "--json"}}) {
    expect_end(one.run(words), 0, {out_is(other.run(words).out)});
  }
  CHECK(json_lines(one.run({"history", "--json", "k"}).out).size() == 8);
}

void min_hold(const Program& one, const Program& other)
{
  CHECK(one.code_of({"run", "-k", "k", "--min-hold", "2s", "--", "true"}) == 0);
  CHECK(other.try_run() == is_busy);
  expect_same_status(one, other);
  CHECK(other.code_of({"run", "-k", "k", "--", "true"}) == 0);
}

void shards(const Program& one, const Program& other)
{
  const auto go = new_file("go");
  const Words two{"--shards", "2"};
  std::vector<Process> all;
  all.push_back(one.hold(two, until_exists(go)));
  all.push_back(other.hold(two, until_exists(go)));
  CHECK(other.try_run(two) == is_busy);
  all.push_back(one.start_run(two, {"true"}));
  create(go);
  expect_ends(all);
}

// The answers to all scripts are lost, one of which was granted, until the other program waits in line.
void acquired_again(const Program& one, const Program& other)
{
  if (!one.url().starts_with("unix:") || is_quorum_topology()) {
    return;
  }
  CHECK(one.try_run() == 0);  // so that the server knows the script
  const auto go = new_file("go");
  std::atomic<bool> loses = true;
  const auto choose = [&](std::string_view request) {
    return loses && has(request, "EVAL") ? std::optional(Fault::answer_lost) : std::nullopt;
  };
  const Relay relay(one.url().substr(std::string_view("unix://").size()), {.choose = choose});
  Process holder =
      one.at(relay.url()).start_run({"--wait-server", "60s"}, shell(noting("one") + "; " + until_exists(go)));
  wait_until([&] { return other.run({"status", "k"}).code == 0; }, "the lock is held");
  Process waiter = other.wait_in_line(1, "other");
  loses = false;
  await_order("one\n");
  CHECK(other.try_run() == is_busy);
  create(go);
  CHECK(holder.wait() == success);
  CHECK(waiter.wait() == success);
  CHECK(order() == "one\nother\n");
}

struct Scenario {
  const char* name;
  void (*run)(const Program& one, const Program& other);
  bool needs_line = false;  // which a quorum has not
};

constexpr std::array scenarios_of_waiters{
    Scenario{"busy, and handed over", busy_and_handed_over},
    Scenario{"one line", one_line, true},
    Scenario{"dead waiters", dead_waiters, true},
    Scenario{"latest", latest, true},
    Scenario{"permits", permits, true},
    Scenario{"readers and writer", readers_and_writer, true},
    Scenario{"native format", native_format, true},
    Scenario{"the other kind waits", the_other_kind_waits},
    Scenario{"shards", shards},
    Scenario{"min-hold", min_hold},
    Scenario{"killed", killed},
    Scenario{"acquired again", acquired_again},
};

constexpr std::array scenarios_of_operators{
    Scenario{"nested", nested},   Scenario{"token", token},
    Scenario{"keeper", keeper},   Scenario{"forced", forced},
    Scenario{"revoked", revoked}, Scenario{"cancelled", cancelled, true},
    Scenario{"deleted", deleted}, Scenario{"once", once_on_both},
    Scenario{"freeze", freeze},   Scenario{"freeze waits first", freeze_waits_first, true},
    Scenario{"history", history},
};

std::string older_program()
{
  const char* const path = std::getenv("RLOCK_TEST_OLDER");
  skip_if(path == nullptr, "RLOCK_TEST_OLDER names no older rlock");
  return path;
}

// Runs each scenario with a server of its own, in both directions.
void run_both_ways(std::span<const Scenario> scenarios)
{
  const std::string older = older_program();
  for (const Scenario& scenario : scenarios) {
    if (scenario.needs_line && is_quorum_topology()) {
      continue;
    }
    SUBCASE(scenario.name)
    {
      std::filesystem::remove(home_dir() / "order");
      const RedisServer server;
      const Program old_one(older, server.url());
      const Program new_one(rlock_argv({}).front(), server.url());
      SUBCASE("the older one first") { scenario.run(old_one, new_one); }
      SUBCASE("the newer one first") { scenario.run(new_one, old_one); }
    }
  }
}

}  // namespace

TEST_SUITE_BEGIN("topology");

TEST_CASE("older release: the lock goes from one program to the other in order")
{
  run_both_ways(scenarios_of_waiters);
}

TEST_CASE("older release: verbs of one program act on the holder of the other")
{
  run_both_ways(scenarios_of_operators);
}

TEST_SUITE_END();

TEST_CASE("older release: one server of local: serves both programs, whichever has started it")
{
  const Program older(older_program(), "local:");
  const Program newer(rlock_argv({}).front(), "local:");
  for (const auto& [one, other] : {std::pair(older, newer), std::pair(newer, older)}) {
    busy_and_handed_over(one, other);
    shut_down(home_dir() / ("rlock-" + clean_environment().at("RLOCK_LOCAL_NAME")) / "redis.sock");
  }
}
