// SPDX-License-Identifier: Apache-2.0
// A job that runs rlock on the lock that it runs under: the hold is counted, and does not wait. Over 300 lines: every
// case needs the nested scripts.
#include "support/activity_log.h"
#include "support/redis_fixture.h"
#include "support/script.h"
#include "support/temp_dir.h"
#include "support/topology.h"
#include "support/wait_until.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

using namespace rlock;
using namespace rlock::test;
using namespace std::chrono_literals;

namespace {

using Words = std::vector<std::string>;

// Jobs within jobs. Each is a script, so that nothing is quoted twice; they report in files.
class NestedRunsFixture {
 public:
  NestedRunsFixture() : m_dir(make_temp_dir("nest")) {}

  // `sh FILE`, in which $RLOCK is the program.
  Words script(const std::string& name, const std::string& text) const
  {
    std::ofstream(m_dir / name) << "cd " << m_dir.string() << "\nRLOCK='" << rlock_program().string() << "'\n" << text;
    return {"sh", (m_dir / name).string()};
  }
  // A shell script: rlock in the background, its pid and then its exit status in files, until the file NAME.go exists.
  static std::string inner(const std::string& name, const std::string& options, const Words& job)
  {
    return "env | grep ^RLOCK > " + name + ".env\n$RLOCK run " + options + " -- " + job[0] + " " + job[1] +
           " & echo $! > " + name + ".pid\nwait $!\necho $? > " + name + ".code\n" + until_told(name);
  }
  static std::string until_told(const std::string& name)
  {
    return "until [ -e " + name + ".go ]; do sleep 0.02; done\n";
  }
  // Reports that it runs, and runs until the file NAME.go exists.
  Words innermost(const std::string& name) const
  {
    return script(name + ".sh", "env | grep ^RLOCK > " + name + ".env\ntouch " + name + ".here\n" + until_told(name));
  }

  Process start(Words options, const Words& job) const
  {
    options.insert(options.begin(), {"run", "-S", server.url()});
    options.emplace_back("--");
    options.insert(options.end(), job.begin(), job.end());
    return Process(rlock_argv(options));
  }

  void tell(const std::string& name) const { std::ofstream(m_dir / (name + ".go")); }
  bool exists(const std::string& file) const { return std::filesystem::exists(m_dir / file); }
  void wait_for(const std::string& file) const
  {
    wait_until([&] { return exists(file); }, file + " is there");
  }
  int number_in(const std::string& file) const
  {
    int number = -1;
    wait_until([&] { return static_cast<bool>(std::ifstream(m_dir / file) >> number); }, file + " has a number");
    return number;
  }
  // The variable `of` in the environment of the job `name`.
  std::string variable(const std::string& name, const std::string& of) const
  {
    std::ifstream file(m_dir / (name + ".env"));
    std::stringstream all;
    all << file.rdbuf();
    const std::string text = "\n" + all.str();
    const auto at = text.find("\n" + of + "=");
    return at == std::string::npos ? "" : text.substr(at + of.size() + 2, text.find('\n', at + 1) - at - of.size() - 2);
  }

  std::int64_t count(const std::string& key = "k") const
  {
    if (is_quorum_topology()) {
      return count_by_quorum(key);
    }
    const Reply counts = server.command({"HVALS", key});
    return counts.elements.empty() ? 0 : std::stoll(counts.elements.at(0).text);
  }
  // On a quorum some servers hear of a hold a moment later.
  void comes_to(std::int64_t holds) const
  {
    wait_until([&] { return count() == holds; }, "it is held " + std::to_string(holds) + " times", 30s);
  }
  // How many holds most servers know. The number on one server says little: each hold may have missed another server.
  std::int64_t count_by_quorum(const std::string& key) const
  {
    const auto all = server.answers({"HKEYS", "rlock:holder:{" + key + "}"});
    std::map<std::string, std::size_t> servers_with;
    for (const Reply& answer : all) {
      for (const std::string& field : as_texts(answer)) {
        servers_with[field] += field.starts_with("hold:") ? 1 : 0;
      }
    }
    return std::count_if(servers_with.begin(), servers_with.end(),
                         [&](const auto& one) { return one.second > all.size() / 2; });
  }
  std::int64_t pttl(const std::string& key = "k") const { return as_int(server.command({"PTTL", key})); }
  void gone_within(Millis ttl, const std::string& key = "k") const
  {
    CHECK(pttl(key) <= ttl.count());
    wait_until([&] { return as_int(server.command({"EXISTS", key})) == 0; }, key + " is free", ttl + 1s);
  }
  bool all_keys_end() const
  {
    const auto keys = as_texts(server.command({"KEYS", "*"}));
    return std::all_of(keys.begin(), keys.end(), [&](const std::string& key) { return pttl(key) != -1; });
  }

  RedisServer server;

 private:
  std::filesystem::path m_dir;
};

// Three nested runs on one lock; the innermost runs when this is constructed.
struct ThreeDeep {
  explicit ThreeDeep(const std::string& ttl, const std::string& innermost = "")
  {
    const Words third = innermost.empty() ? fixture.innermost("third") : fixture.script("third.sh", innermost);
    const Words second = fixture.script("second.sh", NestedRunsFixture::inner("inner", "-k k --ttl " + ttl, third));
    const Words first = fixture.script("first.sh", NestedRunsFixture::inner("middle", "-k k --ttl " + ttl, second));
    outer.emplace(fixture.start({"-k", "k", "--ttl", ttl}, first));
    fixture.comes_to(3);
  }

  NestedRunsFixture fixture;
  std::optional<Process> outer;
};

constexpr Exit well{.code = 0, .signal = 0};

}  // namespace

TEST_SUITE_BEGIN("topology-quick");

TEST_CASE("nested: three deep it counts to three, under one owner and number, and goes with the last")
{
  ThreeDeep deep("30s");
  const NestedRunsFixture& fixture = deep.fixture;
  fixture.wait_for("third.here");
  const std::string owner = fixture.variable("middle", "RLOCK_TOKEN");
  CHECK(fixture.variable("inner", "RLOCK_TOKEN").starts_with(owner + "/"));
  CHECK(fixture.variable("third", "RLOCK_TOKEN").starts_with(owner + "/"));
  CHECK(fixture.variable("third", "RLOCK_TOKEN") != fixture.variable("inner", "RLOCK_TOKEN"));
  for (const char* name : {"RLOCK_FENCE", "RLOCK_KEY"}) {
    CHECK(fixture.variable("middle", name) != "");
    CHECK(fixture.variable("inner", name) == fixture.variable("middle", name));
    CHECK(fixture.variable("third", name) == fixture.variable("middle", name));
  }
  const std::string who =
      as_text(fixture.server.command({"HGET", "rlock:holder:{k}", fixture.variable("middle", "RLOCK_TOKEN")}));
  CHECK(who.find("pid=" + std::to_string(deep.outer->pid())) != std::string::npos);
  CHECK(fixture.all_keys_end());

  fixture.tell("third");
  CHECK(fixture.number_in("inner.code") == 0);
  fixture.comes_to(2);
  fixture.tell("inner");
  CHECK(fixture.number_in("middle.code") == 0);
  fixture.comes_to(1);
  fixture.tell("middle");
  CHECK(deep.outer->wait() == well);
  CHECK(deep.outer->err() == "");
  fixture.comes_to(0);
  CHECK(as_int(fixture.server.command({"EXISTS", "rlock:holder:{k}"})) == 0);
}

TEST_CASE("nested: the inner killed, its guardian releases its hold alone")
{
  ThreeDeep deep("30s");
  const NestedRunsFixture& fixture = deep.fixture;
  fixture.wait_for(
      "third.here");  // granted and started: if the runner is killed between the two, the ttl ends the hold
  ::kill(fixture.number_in("inner.pid"), SIGKILL);
  CHECK(fixture.number_in("inner.code") == 128 + SIGKILL);
  fixture.comes_to(2);
  fixture.tell("inner");
  CHECK(fixture.number_in("middle.code") == 0);
  fixture.comes_to(1);
  fixture.tell("middle");
  CHECK(deep.outer->wait() == well);
  fixture.comes_to(0);
}

TEST_CASE("nested: the middle killed, what ran in it is dead at once, and the outer goes on")
{
  const ActivityLog activity;
  ThreeDeep deep("3s", activity.stubborn_tree("third").back());
  const NestedRunsFixture& fixture = deep.fixture;
  wait_until([&] { return activity.tree_beats("third"); }, "the innermost tree runs");
  const std::int64_t struck = now_ns();
  ::kill(fixture.number_in("middle.pid"), SIGKILL);
  CHECK(fixture.number_in("middle.code") == 128 + SIGKILL);
  std::this_thread::sleep_for(3500ms);  // longer than the lease, which the outer one renews
  CHECK((activity.jobs().at("third").last_ns - struck) / 1'000'000 < 500);
  CHECK(fixture.count() <= 2);  // the inner guardian may have been killed before it released the innermost hold
  CHECK(fixture.count() >= 1);
  fixture.tell("middle");
  CHECK(deep.outer->wait() == well);
  fixture.gone_within(3s);
}

TEST_CASE("nested: the outer killed, its whole tree dies before the lease is over")
{
  const ActivityLog activity;
  ThreeDeep deep("3s", activity.stubborn_tree("third").back());
  const NestedRunsFixture& fixture = deep.fixture;
  wait_until([&] { return activity.tree_beats("third"); }, "the innermost tree runs");
  Process next = fixture.start({"-k", "k"}, {"sh", "-c", activity.short_job("next", 60).back()});
  deep.outer->signal(SIGKILL);
  deep.outer->wait();
  CHECK(next.wait() == well);
  CHECK(overlap(activity.jobs()) == "");
  fixture.comes_to(0);
}

TEST_CASE("nested: all lose the server, and all their jobs are dead before the lease is over")
{
  const ActivityLog activity;
  ThreeDeep deep("3s", activity.stubborn_tree("third").back());
  wait_until([&] { return activity.tree_beats("third"); }, "the innermost tree runs");
  const std::int64_t struck = now_ns();
  deep.fixture.server.stop_signal();
  CHECK(deep.outer->wait() == Exit{.code = 121, .signal = 0});
  deep.fixture.server.cont();
  CHECK((activity.jobs().at("third").last_ns - struck) / 1'000'000 < 3000);
  deep.fixture.gone_within(3s);
  CHECK(deep.fixture.all_keys_end());
}

TEST_CASE("nested: a in b in a")
{
  const NestedRunsFixture fixture;
  const Words third = fixture.innermost("third");
  const Words second = fixture.script("second.sh", NestedRunsFixture::inner("inner", "-k a", third));
  const Words first = fixture.script("first.sh", NestedRunsFixture::inner("middle", "-k b", second));
  Process outer = fixture.start({"-k", "a"}, first);
  fixture.wait_for("third.here");
  CHECK(fixture.count("a") == 2);
  CHECK(fixture.count("b") == 1);
  CHECK(fixture.variable("third", "RLOCK_TOKEN").starts_with(fixture.variable("middle", "RLOCK_TOKEN") + "/"));
  CHECK_FALSE(fixture.variable("inner", "RLOCK_TOKEN").starts_with(fixture.variable("middle", "RLOCK_TOKEN")));
  for (const char* name : {"third", "inner", "middle"}) {
    fixture.tell(name);
  }
  CHECK(outer.wait() == well);
  CHECK(fixture.number_in("inner.code") == 0);
  CHECK(fixture.count("a") == 0);
  CHECK(fixture.count("b") == 0);
}

TEST_CASE("nested: the outer lets go first, and the inner goes on holding")
{
  const NestedRunsFixture fixture;
  const Words second = fixture.innermost("inner");
  Process outer =
      fixture.start({"-k", "k", "--ttl", "3s"},
                    fixture.script("first.sh", "setsid $RLOCK run -k k --ttl 3s -- " + second[0] + " " + second[1] +
                                                   " &\nuntil [ -e inner.here ]; do sleep 0.02; done\n"));
  CHECK(outer.wait() == well);
  fixture.comes_to(1);
  Process other = fixture.start({"-k", "k"}, {"true"});
  for (int i = 0; i < 80; ++i) {  // longer than the lease
    CHECK(fixture.pttl() > 0);
    std::this_thread::sleep_for(50ms);
  }
  CHECK(other.running());
  fixture.tell("inner");
  CHECK(other.wait() == well);
  fixture.comes_to(0);
}

TEST_CASE("nested: a lock that no ancestor holds is waited for as ever")
{
  skip_on_quorum("a quorum has no queue");
  const NestedRunsFixture fixture;
  const Words there = fixture.innermost("holder");
  Process holder = fixture.start({"-k", "b"}, there);
  fixture.wait_for("holder.here");
  CHECK(fixture.start({"-k", "a"}, fixture.script("try.sh", "$RLOCK run -n -k b -- true\n")).wait() ==
        Exit{.code = 75, .signal = 0});
  Process outer = fixture.start({"-k", "a"}, fixture.script("wait.sh", "$RLOCK run -k b -- true\n"));
  wait_until([&] { return as_int(fixture.server.command({"ZCARD", "rlock:queue:{b}"})) == 1; }, "the inner one waits");
  fixture.tell("holder");
  CHECK(outer.wait() == well);
}

TEST_CASE("nested: an environment that is out of date gets a lock of its own")
{
  const NestedRunsFixture fixture;
  const Words job = fixture.innermost("job");
  Words words{"run", "-S", fixture.server.url(), "-k", "k", "--", job[0], job[1]};
  Process fresh(rlock_argv(words), {.env = {{"RLOCK_HELD", "dead:1 k"}}});
  fixture.wait_for("job.here");
  CHECK(fixture.variable("job", "RLOCK_TOKEN") != "dead:1");
  fixture.comes_to(1);

  words = {"run", "-S", fixture.server.url(), "-n", "-k", "k", "--", "true"};
  CHECK(run_rlock(words, {.env = {{"RLOCK_HELD", "dead:1 k"}}}).code == 75);
  fixture.tell("job");
  CHECK(fresh.wait() == well);
}

TEST_CASE("nested: on another server the ancestor is unknown")
{
  skip_on_quorum("the script has room for one URL");
  const NestedRunsFixture fixture;
  const RedisServer elsewhere;
  const Words job = fixture.innermost("job");
  Process outer = fixture.start(
      {"-k", "k"},
      fixture.script("first.sh", NestedRunsFixture::inner("inner", "-S " + elsewhere.url() + " -k k", job)));
  fixture.wait_for("job.here");
  fixture.comes_to(1);
  CHECK(as_int(elsewhere.command({"HLEN", "k"})) == 1);
  CHECK(fixture.variable("job", "RLOCK_TOKEN") != fixture.variable("inner", "RLOCK_TOKEN"));
  fixture.tell("job");
  fixture.tell("inner");
  CHECK(outer.wait() == well);
}

TEST_CASE("nested: a lock that the outer has lost is not re-entered")
{
  const NestedRunsFixture fixture;
  const Words job = fixture.innermost("job");
  const Words first = fixture.script("first.sh", "touch first.here\n" + NestedRunsFixture::until_told("first") +
                                                     NestedRunsFixture::inner("inner", "-k k", job));
  Process outer = fixture.start({"-k", "k", "--on-lost", "warn"}, first);
  fixture.wait_for("first.here");
  fixture.server.command({"DEL", "k"});
  SUBCASE("it is free")
  {
    fixture.tell("first");
    fixture.wait_for("job.here");
    CHECK(fixture.variable("job", "RLOCK_TOKEN") != fixture.variable("inner", "RLOCK_TOKEN"));
    fixture.comes_to(1);
  }
  SUBCASE("somebody else holds it")
  {
    skip_on_quorum("a quorum has no queue");
    fixture.server.command({"HSET", "k", "somebody:1", "1"});
    fixture.server.command({"PEXPIRE", "k", "20000"});
    fixture.tell("first");
    wait_until(
        [&] {
          return as_int(fixture.server.command({"ZCARD", "rlock:queue:{k}"})) == 1;
        },
        "the inner one waits");
    CHECK(as_text(fixture.server.command({"HGET", "k", "somebody:1"})) == "1");
    fixture.server.command({"DEL", "k"});
    fixture.server.command({"PUBLISH", "redisson_lock__channel:{k}", "0"});
    fixture.wait_for("job.here");
  }
  fixture.tell("job");
  CHECK(fixture.number_in("inner.code") == 0);
  fixture.tell("inner");
  CHECK(outer.wait() == Exit{.code = 121, .signal = 0});
}

TEST_CASE("nested: force-unlock stops them all")
{
  const ActivityLog activity;
  ThreeDeep deep("20s", activity.stubborn_tree("third").back());
  wait_until([&] { return activity.tree_beats("third"); }, "the innermost tree runs");
  const Finished forced = run_rlock({"force-unlock", "-S", deep.fixture.server.url(), "-k", "k", "--yes", "--json"});
  CHECK(forced.code == 0);
  CHECK(forced.out.find("\"released\"") != std::string::npos);
  CHECK(deep.outer->wait(5s) == Exit{.code = 121, .signal = 0});
  const int beats = activity.jobs().at("third").beats;
  std::this_thread::sleep_for(100ms);
  CHECK(activity.jobs().at("third").beats == beats);
  deep.fixture.comes_to(0);
}

TEST_CASE("nested: the inner lets go when memory is full")
{
  ThreeDeep deep("30s");
  deep.fixture.server.command({"CONFIG", "SET", "maxmemory", "1"});
  for (const char* name : {"third", "inner", "middle"}) {
    deep.fixture.tell(name);
  }
  CHECK(deep.outer->wait() == well);
  deep.fixture.comes_to(0);
}

TEST_CASE("nested: a lease of its own neither shortens nor outlives the outer one's")
{
  const NestedRunsFixture fixture;
  Process outer = fixture.start({"-k", "k", "--ttl", "20s"},
                                fixture.script("first.sh", "$RLOCK run -k k --lease 2s -- sleep 30\necho $? > code\n" +
                                                               NestedRunsFixture::until_told("first")));
  fixture.comes_to(2);
  const auto is_over = [&] {
    CHECK(fixture.pttl() > 8000);
    return fixture.exists("code");
  };
  wait_until(is_over, "the inner lease is over");
  CHECK(fixture.number_in("code") == 124);
  fixture.comes_to(1);
  fixture.tell("first");
  CHECK(outer.wait() == well);
}

TEST_CASE("nested: every kind of lock counts, and what cannot be nested is refused")
{
  struct Row {
    const char* outer;
    const char* inner;
    int code;
  };
  const Row rows[] = {
      {"-x", "-x", 0},
      {"-s", "-s", 0},
      {"-x", "-s", 0},
      {"--permits 1", "--permits 1", 0},
      {"--format string", "--format string", 0},
      {"-s", "-x", 78},  // two of these would wait for each other
      {"-x", "", 78},    // another lock
  };
  for (const Row& row : rows) {
    CAPTURE(row.outer);
    CAPTURE(row.inner);
    const NestedRunsFixture fixture;
    const std::string again = "$RLOCK run -k k -w 3s " + std::string(row.inner) + " -- ";
    const Words third = fixture.script("third.sh", again + "touch third.here\n");
    const Words second = fixture.script("second.sh", again + third[0] + " " + third[1] + "\n");
    Words options{"-k", "k"};
    std::istringstream words(row.outer);
    for (std::string word; words >> word;) {
      options.push_back(word);
    }
    CHECK(fixture.start(options, second).wait() == Exit{.code = row.code, .signal = 0});
    CHECK(fixture.exists("third.here") == (row.code == 0));
    CHECK(run_rlock({"status", "-S", fixture.server.url(), "-k", "k"}).code == 1);
  }
}

TEST_CASE("nested: once, in a lock that is held already, runs once")
{
  const NestedRunsFixture fixture;
  const std::string once = "$RLOCK once -k k --for 1h -- sh -c 'echo ran >> ran'\n";
  CHECK(fixture.start({"-k", "k"}, fixture.script("twice.sh", once + once + "cat ran\n")).wait() == well);
  Process show = fixture.start({"-k", "k"}, fixture.script("show.sh", once + "cat ran\n"));
  CHECK(show.wait() == well);
  CHECK(show.out() == "ran\n");
  fixture.comes_to(0);
}

TEST_CASE("nested: acquire counts as well, and lets go of its own hold alone")
{
  const NestedRunsFixture fixture;
  const Words script = fixture.script(
      "script.sh", "token=$($RLOCK acquire -k k --pid $$ -w 3s) || exit\necho $token > token\n" +
                       NestedRunsFixture::until_told("taken") +
                       "$RLOCK check --token $token || exit\n$RLOCK renew --token $token --lease 40s || exit\n"
                       "$RLOCK release --token $token || exit\ntouch released.here\n" +
                       NestedRunsFixture::until_told("released") +
                       "eval \"$($RLOCK acquire -k k --pid $$ -w 3s --export)\"\n"
                       "$RLOCK run -k k -w 3s -- touch third.here || exit\n"
                       "touch again.here\n" +
                       NestedRunsFixture::until_told("again"));
  Process outer = fixture.start({"-k", "k"}, script);
  fixture.wait_for("token");
  fixture.comes_to(2);
  fixture.tell("taken");
  fixture.wait_for("released.here");
  fixture.comes_to(1);
  CHECK(outer.running());
  fixture.tell("released");
  fixture.wait_for("again.here");
  CHECK(fixture.exists("third.here"));
  fixture.comes_to(2);
  fixture.tell("again");
  CHECK(outer.wait() == well);
  CHECK(outer.err() == "");
  fixture.comes_to(0);
}

TEST_SUITE_END();
