// SPDX-License-Identifier: Apache-2.0
// A job that runs rlock itself, on a lock that it runs under: counted, not waited for.
#include "support/redis_fixture.h"
#include "support/script.h"
#include "support/temp_dir.h"
#include "support/wait_until.h"
#include "support/witness.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <csignal>
#include <fstream>
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

// Jobs within jobs. Each is a script, so that nothing is quoted twice; what they tell is in files.
class Nest {
 public:
  Nest() : m_dir(make_temp_dir("nest")) {}

  // `sh FILE`, in which $RLOCK is the program.
  Words script(const std::string& name, const std::string& text) const
  {
    std::ofstream(m_dir / name) << "cd " << m_dir.string() << "\nRLOCK='" << rlock_program().string() << "'\n" << text;
    return {"sh", (m_dir / name).string()};
  }
  // A line of shell: rlock in the background, its pid and then its exit status in files, until told to go on.
  static std::string inner(const std::string& name, const std::string& options, const Words& job)
  {
    return "env | grep ^RLOCK > " + name + ".env\n$RLOCK run " + options + " -- " + job[0] + " " + job[1] +
           " & echo $! > " + name + ".pid\nwait $!\necho $? > " + name + ".code\n" + until_told(name);
  }
  static std::string until_told(const std::string& name)
  {
    return "until [ -e " + name + ".go ]; do sleep 0.02; done\n";
  }
  // Says that it is there and stays until it is told to go.
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
  // What the job `name` found in its environment.
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
    const Reply counts = server.command({"HVALS", key});
    return counts.elements.empty() ? 0 : std::stoll(counts.elements.at(0).text);
  }
  // Of several servers some hear of it a moment later; none forgets it by itself as soon as that.
  void comes_to(std::int64_t holds) const
  {
    wait_until([&] { return count() == holds; }, "it is held " + std::to_string(holds) + " times", 10s);
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

// Three deep on one lock; the innermost is there when this is made.
struct ThreeDeep {
  explicit ThreeDeep(const std::string& ttl, const std::string& innermost = "")
  {
    const Words third = innermost.empty() ? nest.innermost("third") : nest.script("third.sh", innermost);
    const Words second = nest.script("second.sh", Nest::inner("inner", "-k k --ttl " + ttl, third));
    const Words first = nest.script("first.sh", Nest::inner("middle", "-k k --ttl " + ttl, second));
    outer.emplace(nest.start({"-k", "k", "--ttl", ttl}, first));
    nest.comes_to(3);
  }

  Nest nest;
  std::optional<Process> outer;
};

constexpr Exit well{.code = 0, .signal = 0};

}  // namespace

TEST_CASE("nested: three deep it counts to three, under one owner and number, and goes with the last")
{
  ThreeDeep deep("30s");
  const Nest& nest = deep.nest;
  nest.wait_for("third.here");
  const std::string owner = nest.variable("middle", "RLOCK_TOKEN");
  CHECK(nest.variable("inner", "RLOCK_TOKEN").starts_with(owner + "/"));
  CHECK(nest.variable("third", "RLOCK_TOKEN").starts_with(owner + "/"));
  CHECK(nest.variable("third", "RLOCK_TOKEN") != nest.variable("inner", "RLOCK_TOKEN"));
  for (const char* name : {"RLOCK_FENCE", "RLOCK_KEY"}) {
    CHECK(nest.variable("middle", name) != "");
    CHECK(nest.variable("inner", name) == nest.variable("middle", name));
    CHECK(nest.variable("third", name) == nest.variable("middle", name));
  }
  const std::string who =
      as_text(nest.server.command({"HGET", "rlock:holder:{k}", nest.variable("middle", "RLOCK_TOKEN")}));
  CHECK(who.find("pid=" + std::to_string(deep.outer->pid())) != std::string::npos);
  CHECK(nest.all_keys_end());

  nest.tell("third");
  CHECK(nest.number_in("inner.code") == 0);
  nest.comes_to(2);
  nest.tell("inner");
  CHECK(nest.number_in("middle.code") == 0);
  nest.comes_to(1);
  nest.tell("middle");
  CHECK(deep.outer->wait() == well);
  CHECK(deep.outer->err() == "");
  nest.comes_to(0);
  CHECK(as_int(nest.server.command({"EXISTS", "rlock:holder:{k}"})) == 0);
}

TEST_CASE("nested: the inner killed, its guardian releases its hold alone")
{
  ThreeDeep deep("30s");
  const Nest& nest = deep.nest;
  nest.wait_for("third.here");  // granted and started: a kill between the two leaves the hold to the ttl
  ::kill(nest.number_in("inner.pid"), SIGKILL);
  CHECK(nest.number_in("inner.code") == 128 + SIGKILL);
  nest.comes_to(2);
  nest.tell("inner");
  CHECK(nest.number_in("middle.code") == 0);
  nest.comes_to(1);
  nest.tell("middle");
  CHECK(deep.outer->wait() == well);
  nest.comes_to(0);
}

TEST_CASE("nested: the middle killed, what ran in it is dead at once, and the outer goes on")
{
  const Witness witness;
  ThreeDeep deep("1s", witness.stubborn_tree("third").back());
  const Nest& nest = deep.nest;
  wait_until([&] { return witness.tree_beats("third"); }, "the innermost tree runs");
  const std::int64_t struck = now_ns();
  ::kill(nest.number_in("middle.pid"), SIGKILL);
  CHECK(nest.number_in("middle.code") == 128 + SIGKILL);
  std::this_thread::sleep_for(1500ms);  // longer than the lease, which the outer renews
  CHECK((witness.jobs().at("third").last_ns - struck) / 1'000'000 < 500);
  CHECK(nest.count() <= 2);  // the inner guardian may have been killed before it released the innermost hold
  CHECK(nest.count() >= 1);
  nest.tell("middle");
  CHECK(deep.outer->wait() == well);
  nest.gone_within(1s);
}

TEST_CASE("nested: the outer killed, its whole tree dies before the lease is over")
{
  const Witness witness;
  ThreeDeep deep("1s", witness.stubborn_tree("third").back());
  const Nest& nest = deep.nest;
  wait_until([&] { return witness.tree_beats("third"); }, "the innermost tree runs");
  Process next = nest.start({"-k", "k"}, {"sh", "-c", witness.short_job("next", 60).back()});
  deep.outer->signal(SIGKILL);
  deep.outer->wait();
  CHECK(next.wait() == well);
  CHECK(overlap(witness.jobs()) == "");
  nest.comes_to(0);
}

TEST_CASE("nested: all lose the server, and all their jobs are dead before the lease is over")
{
  const Witness witness;
  ThreeDeep deep("1s", witness.stubborn_tree("third").back());
  wait_until([&] { return witness.tree_beats("third"); }, "the innermost tree runs");
  const std::int64_t struck = now_ns();
  deep.nest.server.stop_signal();
  CHECK(deep.outer->wait() == Exit{.code = 121, .signal = 0});
  deep.nest.server.cont();
  CHECK((witness.jobs().at("third").last_ns - struck) / 1'000'000 < 1000);
  deep.nest.gone_within(1s);
  CHECK(deep.nest.all_keys_end());
}

TEST_CASE("nested: a in b in a")
{
  const Nest nest;
  const Words third = nest.innermost("third");
  const Words second = nest.script("second.sh", Nest::inner("inner", "-k a", third));
  const Words first = nest.script("first.sh", Nest::inner("middle", "-k b", second));
  Process outer = nest.start({"-k", "a"}, first);
  nest.wait_for("third.here");
  CHECK(nest.count("a") == 2);
  CHECK(nest.count("b") == 1);
  CHECK(nest.variable("third", "RLOCK_TOKEN").starts_with(nest.variable("middle", "RLOCK_TOKEN") + "/"));
  CHECK_FALSE(nest.variable("inner", "RLOCK_TOKEN").starts_with(nest.variable("middle", "RLOCK_TOKEN")));
  for (const char* name : {"third", "inner", "middle"}) {
    nest.tell(name);
  }
  CHECK(outer.wait() == well);
  CHECK(nest.number_in("inner.code") == 0);
  CHECK(nest.count("a") == 0);
  CHECK(nest.count("b") == 0);
}

TEST_CASE("nested: the outer lets go first, and the inner goes on holding")
{
  const Nest nest;
  const Words second = nest.innermost("inner");
  Process outer =
      nest.start({"-k", "k", "--ttl", "2s"},
                 nest.script("first.sh", "setsid $RLOCK run -k k --ttl 2s -- " + second[0] + " " + second[1] +
                                             " &\nuntil [ -e inner.here ]; do sleep 0.02; done\n"));
  CHECK(outer.wait() == well);
  nest.comes_to(1);
  Process other = nest.start({"-k", "k"}, {"true"});
  for (int i = 0; i < 60; ++i) {  // longer than the lease
    CHECK(nest.pttl() > 0);
    std::this_thread::sleep_for(50ms);
  }
  CHECK(other.running());
  nest.tell("inner");
  CHECK(other.wait() == well);
  nest.comes_to(0);
}

TEST_CASE("nested: a lock that no ancestor holds is waited for as ever")
{
  not_on_a_quorum("nobody stands in line there");
  const Nest nest;
  const Words there = nest.innermost("holder");
  Process holder = nest.start({"-k", "b"}, there);
  nest.wait_for("holder.here");
  CHECK(nest.start({"-k", "a"}, nest.script("try.sh", "$RLOCK run -n -k b -- true\n")).wait() ==
        Exit{.code = 75, .signal = 0});
  Process outer = nest.start({"-k", "a"}, nest.script("wait.sh", "$RLOCK run -k b -- true\n"));
  wait_until([&] { return as_int(nest.server.command({"ZCARD", "rlock:queue:{b}"})) == 1; }, "the inner one waits");
  nest.tell("holder");
  CHECK(outer.wait() == well);
}

TEST_CASE("nested: an environment that is out of date gets a lock of its own")
{
  const Nest nest;
  const Words job = nest.innermost("job");
  Words words{"run", "-S", nest.server.url(), "-k", "k", "--", job[0], job[1]};
  Process fresh(rlock_argv(words), {.env = {{"RLOCK_HELD", "dead:1 k"}}});
  nest.wait_for("job.here");
  CHECK(nest.variable("job", "RLOCK_TOKEN") != "dead:1");
  nest.comes_to(1);

  words = {"run", "-S", nest.server.url(), "-n", "-k", "k", "--", "true"};
  CHECK(run_rlock(words, {.env = {{"RLOCK_HELD", "dead:1 k"}}}).code == 75);
  nest.tell("job");
  CHECK(fresh.wait() == well);
}

TEST_CASE("nested: on another server the ancestor is unknown")
{
  not_on_a_quorum("the script has room for one URL");
  const Nest nest;
  const RedisServer elsewhere;
  const Words job = nest.innermost("job");
  Process outer =
      nest.start({"-k", "k"}, nest.script("first.sh", Nest::inner("inner", "-S " + elsewhere.url() + " -k k", job)));
  nest.wait_for("job.here");
  nest.comes_to(1);
  CHECK(as_int(elsewhere.command({"HLEN", "k"})) == 1);
  CHECK(nest.variable("job", "RLOCK_TOKEN") != nest.variable("inner", "RLOCK_TOKEN"));
  nest.tell("job");
  nest.tell("inner");
  CHECK(outer.wait() == well);
}

TEST_CASE("nested: a lock that the outer has lost is not re-entered")
{
  const Nest nest;
  const Words job = nest.innermost("job");
  const Words first =
      nest.script("first.sh", "touch first.here\n" + Nest::until_told("first") + Nest::inner("inner", "-k k", job));
  Process outer = nest.start({"-k", "k", "--on-lost", "warn"}, first);
  nest.wait_for("first.here");
  nest.server.command({"DEL", "k"});
  SUBCASE("it is free")
  {
    nest.tell("first");
    nest.wait_for("job.here");
    CHECK(nest.variable("job", "RLOCK_TOKEN") != nest.variable("inner", "RLOCK_TOKEN"));
    nest.comes_to(1);
  }
  SUBCASE("somebody else holds it")
  {
    not_on_a_quorum("nobody stands in line there");
    nest.server.command({"HSET", "k", "somebody:1", "1"});
    nest.server.command({"PEXPIRE", "k", "20000"});
    nest.tell("first");
    wait_until([&] { return as_int(nest.server.command({"ZCARD", "rlock:queue:{k}"})) == 1; }, "the inner one waits");
    CHECK(as_text(nest.server.command({"HGET", "k", "somebody:1"})) == "1");
    nest.server.command({"DEL", "k"});
    nest.server.command({"PUBLISH", "redisson_lock__channel:{k}", "0"});
    nest.wait_for("job.here");
  }
  nest.tell("job");
  CHECK(nest.number_in("inner.code") == 0);
  nest.tell("inner");
  CHECK(outer.wait() == Exit{.code = 121, .signal = 0});
}

TEST_CASE("nested: force-unlock stops them all")
{
  const Witness witness;
  ThreeDeep deep("20s", witness.stubborn_tree("third").back());
  wait_until([&] { return witness.tree_beats("third"); }, "the innermost tree runs");
  const Finished forced = run_rlock({"force-unlock", "-S", deep.nest.server.url(), "-k", "k", "--yes", "--json"});
  CHECK(forced.code == 0);
  CHECK(forced.out.find("\"released\"") != std::string::npos);
  CHECK(deep.outer->wait(5s) == Exit{.code = 121, .signal = 0});
  const int beats = witness.jobs().at("third").beats;
  std::this_thread::sleep_for(100ms);
  CHECK(witness.jobs().at("third").beats == beats);
  deep.nest.comes_to(0);
}

TEST_CASE("nested: the inner lets go when memory is full")
{
  ThreeDeep deep("30s");
  deep.nest.server.command({"CONFIG", "SET", "maxmemory", "1"});
  for (const char* name : {"third", "inner", "middle"}) {
    deep.nest.tell(name);
  }
  CHECK(deep.outer->wait() == well);
  deep.nest.comes_to(0);
}

TEST_CASE("nested: a lease of its own neither shortens nor outlives the outer one's")
{
  const Nest nest;
  Process outer = nest.start(
      {"-k", "k", "--ttl", "20s"},
      nest.script("first.sh", "$RLOCK run -k k --lease 2s -- sleep 30\necho $? > code\n" + Nest::until_told("first")));
  nest.comes_to(2);
  const auto is_over = [&] {
    CHECK(nest.pttl() > 8000);
    return nest.exists("code");
  };
  wait_until(is_over, "the inner lease is over");
  CHECK(nest.number_in("code") == 124);
  nest.comes_to(1);
  nest.tell("first");
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
      {"-s", "-x", 78},  // two that did that would wait for each other
      {"-x", "", 78},    // not the same lock
  };
  for (const Row& row : rows) {
    CAPTURE(row.outer);
    CAPTURE(row.inner);
    const Nest nest;
    const std::string again = "$RLOCK run -k k -w 3s " + std::string(row.inner) + " -- ";
    const Words third = nest.script("third.sh", again + "touch third.here\n");
    const Words second = nest.script("second.sh", again + third[0] + " " + third[1] + "\n");
    Words options{"-k", "k"};
    std::istringstream words(row.outer);
    for (std::string word; words >> word;) {
      options.push_back(word);
    }
    CHECK(nest.start(options, second).wait() == Exit{.code = row.code, .signal = 0});
    CHECK(nest.exists("third.here") == (row.code == 0));
    CHECK(run_rlock({"status", "-S", nest.server.url(), "-k", "k"}).code == 1);
  }
}

TEST_CASE("nested: once, in a lock that is held already, runs once")
{
  const Nest nest;
  const std::string once = "$RLOCK once -k k --for 1h -- sh -c 'echo ran >> ran'\n";
  CHECK(nest.start({"-k", "k"}, nest.script("twice.sh", once + once + "cat ran\n")).wait() == well);
  Process show = nest.start({"-k", "k"}, nest.script("show.sh", once + "cat ran\n"));
  CHECK(show.wait() == well);
  CHECK(show.out() == "ran\n");
  nest.comes_to(0);
}

TEST_CASE("nested: acquire counts as well, and lets go of its own hold alone")
{
  const Nest nest;
  const Words script = nest.script(
      "script.sh", "token=$($RLOCK acquire -k k --pid $$ -w 3s) || exit\necho $token > token\n" +
                       Nest::until_told("taken") +
                       "$RLOCK check --token $token || exit\n$RLOCK renew --token $token --lease 40s || exit\n"
                       "$RLOCK release --token $token || exit\ntouch released.here\n" +
                       Nest::until_told("released") +
                       "eval \"$($RLOCK acquire -k k --pid $$ -w 3s --export)\"\n"
                       "$RLOCK run -k k -w 3s -- touch third.here || exit\n"
                       "touch again.here\n" +
                       Nest::until_told("again"));
  Process outer = nest.start({"-k", "k"}, script);
  nest.wait_for("token");
  nest.comes_to(2);
  nest.tell("taken");
  nest.wait_for("released.here");
  nest.comes_to(1);
  CHECK(outer.running());
  nest.tell("released");
  nest.wait_for("again.here");
  CHECK(nest.exists("third.here"));
  nest.comes_to(2);
  nest.tell("again");
  CHECK(outer.wait() == well);
  CHECK(outer.err() == "");
  nest.comes_to(0);
}
