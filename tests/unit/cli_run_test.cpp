// SPDX-License-Identifier: Apache-2.0
#include "cli/verbs/run.h"

#include "base/duration.h"
#include "cli/verbs/flock.h"
#include "cli/verbs/force_unlock.h"
#include "unit/typed_options.h"

#include "support/temp_dir.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>

using namespace rlock;
using namespace rlock::cli;
using namespace rlock::test;

namespace {

using Args = std::vector<std::string>;

Result<RunRequest> request_of(const Args& args, const std::vector<std::string>& environment)
{
  RawRun typed;
  OptionTable known("run");
  add_run_options(known, typed);
  ASSIGN_OR_RETURN(const auto operands, operands_of(known, args, Operands::command));
  return resolve_run(typed, operands, Environment(environment));
}

// `-k k`, the options, `-- true`: the error, with its exit code before it.
std::string error_of(Args options)
{
  options.insert(options.begin(), {"-k", "k"});
  options.insert(options.end(), {"--", "true"});
  const auto request = request_of(options, {});
  if (request) {
    return "none";
  }
  const int code = static_cast<int>(exit_code_of(request.error().code));
  return std::to_string(code) + " " + request.error().text;
}

std::string names_of(const RunRequest& request)
{
  std::string names;
  for (const LockName& name : request.names) {
    names += (names.empty() ? "" : " ") + name.text();
  }
  return names;
}

RunRequest request_with(Args options)
{
  options.insert(options.begin(), {"-k", "k"});
  options.insert(options.end(), {"--", "true"});
  return *request_of(options, {});
}

}  // namespace

TEST_CASE("run: the defaults of the contract")
{
  const RunRequest request = request_with({});
  CHECK(names_of(request) == "k");
  CHECK(request.server.shown() == "redis://127.0.0.1:6379");
  CHECK(request.server.timeout == Millis{5000});
  CHECK(request.automatic);
  CHECK(request.ttl == Millis{30'000});
  CHECK_FALSE(request.wait.has_value());
  CHECK(request.busy_code == 75);
  CHECK(request.min_hold == Millis{0});
  CHECK_FALSE(request.max_runtime.has_value());
  CHECK(request.stop_signal == SIGTERM);
  CHECK(request.kill_after == Millis{5000});
  CHECK_FALSE(request.kills_after_signal);
  CHECK(request.leftovers == Leftovers::stop);
  CHECK(request.on_lost == OnLost::stop);
  CHECK(request.argv == Args{"true"});
}

TEST_CASE("run: every option has its meaning")
{
  CHECK(names_of(request_with({"--prefix", "eu:"})) == "eu:k");
  CHECK(names_of(request_with({"-k", "z", "-k", "a", "-k", "k"})) == "a k z");  // sorted, each once
  CHECK(request_with({"-n"}).wait == Millis{0});
  CHECK(request_with({"--nb"}).wait == Millis{0});
  CHECK(request_with({"-w", "0"}).wait == Millis{0});
  CHECK(request_with({"-n", "-w0"}).wait == Millis{0});
  CHECK(request_with({"--timeout=1.5s"}).wait == Millis{1500});
  CHECK(request_with({"-E", "0"}).busy_code == 0);
  CHECK(request_with({"-E255"}).busy_code == 255);
  CHECK(request_with({"--ttl", "100ms"}).ttl == Millis{100});
  CHECK(request_with({"--lease", "auto", "--ttl", "1m"}).ttl == Millis{60'000});
  CHECK(request_with({"--min-hold", "0"}).min_hold == Millis{0});
  CHECK(request_with({"--min-hold", "90s"}).min_hold == Millis{90'000});
  CHECK(request_with({"--min-hold=30d"}).min_hold == std::chrono::hours{30 * 24});
  CHECK(request_with({"--priority", "-100", "--shards", "2"}).priority == -100);
  CHECK(request_with({"-n", "--priority", "0"}).priority == 0);
  CHECK(request_with({"--max-waiting", "3", "--latest"}).max_waiting == 3U);
  CHECK(request_with({"--max-waiting", "0", "-n"}).wait == Millis{0});
  CHECK(request_with({"--max-waiting", "0", "-w", "10s"}).wait == Millis{0});
  CHECK(request_with({"--max-runtime", "1h"}).max_runtime == Millis{3'600'000});
  CHECK(request_with({"--kill-after", "0"}).kill_after == Millis{0});
  CHECK(request_with({"--kill-after", "5s"}).kills_after_signal);
  CHECK(request_with({"--signal", "SIGINT"}).stop_signal == SIGINT);
  CHECK(request_with({"--signal", "15"}).stop_signal == SIGTERM);
  CHECK(request_with({"--leftovers", "leave"}).leftovers == Leftovers::leave);
  CHECK(request_with({"--on-lost=warn"}).on_lost == OnLost::warn);
  CHECK(request_with({"--label", "nightly"}).label == "nightly");
  CHECK(request_with({"--sync", "2"}).sync == 2);
  const RunRequest reader = request_with({"-s", "--format", "curator", "-S", "zookeeper://a"});
  CHECK(std::holds_alternative<Reader>(reader.kind));
  CHECK(reader.beside == NativeFormat::curator);

  CHECK(request_with({}).shards.empty());
  CHECK(request_with({"--shards", "1024"}).shards.size() == 1024);
  CHECK(request_with({"--shards", "2", "--prefix", "eu:"}).shards.front().text() == "eu:k:0");
  CHECK(request_with({"--shards", "2", "--prefix", "eu:"}).shards.back().text() == "eu:k:1");

  CHECK(request_with({"--shards", "2"}).shard_names.empty());

  const RunRequest fixed = request_with({"--lease", "5m"});
  CHECK_FALSE(fixed.automatic);
  CHECK(fixed.ttl == Millis{300'000});
}

TEST_CASE("run: what cannot be meant is 64, names the option and shows a good value")
{
  struct Row {
    Args options;
    const char* expect;
  };
  const Row rows[] = {
      {{"-w", "-1"}, "64 --wait: '-1' is not a duration (try --wait 10s)"},
      {{"-w", ""}, "64 --wait: '' is not a duration (try --wait 10s)"},
      {{"-w", "99999999999999999999"}, "64 --wait: '99999999999999999999' is too long, at most 3660d (try --wait 10s)"},
      {{"-n", "-w", "1"}, "64 --no-wait and --wait exclude each other (try -w 10s alone)"},
      {{"-n", "--latest"}, "64 --no-wait and --latest exclude each other (leave one of them out)"},
      {{"-w", "0", "--latest"}, "64 --latest is for runs that wait (leave out --wait 0, or --latest)"},
      {{"-k", "l", "--latest"}, "64 --latest is for one lock (try one -k)"},
      {{"--shards", "2", "--cancel-in-progress"},
       "64 --shards and --cancel-in-progress exclude each other (leave one of them out)"},
      {{"--permits", "2", "--cancel-in-progress"},
       "64 --permits and --cancel-in-progress exclude each other (leave one of them out)"},
      {{"-S", "redis://a", "-S", "redis://b", "-S", "redis://c", "--latest"},
       "64 --latest is for one server: several servers have no queue (try one -S)"},
      {{"--max-waiting", "1001"}, "64 --max-waiting: '1001' is not a number from 0 to 1000 (try --max-waiting 3)"},
      {{"--priority", "-101"}, "64 --priority: '-101' is not a number from -100 to 100 (try --priority 10)"},
      {{"-n", "--priority", "5"}, "64 --no-wait and --priority exclude each other (try --priority 10 alone)"},
      {{"--max-waiting", "0", "--priority", "5"},
       "64 --priority is for runs that wait (leave out --max-waiting 0, or --priority)"},
      {{"-S", "redis://a", "-S", "redis://b", "--priority", "5"},
       "64 --priority is for one server: several servers have no queue (try one -S)"},
      {{"--format", "kazoo", "-S", "zookeeper://a", "--priority", "-5"},
       "64 --priority: with --format kazoo other clients stand in the line as well, and rlock cannot order or count "
       "them (leave out --priority)"},
      {{"-n", "--max-waiting", "3"}, "64 --no-wait and --max-waiting exclude each other (try --max-waiting 3 alone)"},
      {{"-w", "0", "--max-waiting", "3"},
       "64 --max-waiting is for runs that wait (leave out --wait 0, or --max-waiting)"},
      {{"--latest", "--max-waiting", "0"},
       "64 --latest is for runs that wait (leave out --max-waiting 0, or --latest)"},
      {{"-S", "redis://a", "-S", "redis://b", "-S", "redis://c", "--max-waiting", "3"},
       "64 --max-waiting is for one server: several servers have no queue (try one -S)"},
      {{"--format", "etcd", "-S", "etcd://a", "--max-waiting", "3"},
       "64 --max-waiting: with --format etcd other clients stand in the line as well, and rlock cannot order or count "
       "them (leave out --max-waiting)"},
      {{"-E", "-1"}, "64 --conflict-exit-code: '-1' is not a number from 0 to 255 (try --conflict-exit-code 0)"},
      {{"-E", "256"}, "64 --conflict-exit-code: '256' is not a number from 0 to 255 (try --conflict-exit-code 0)"},
      {{"-E", "7x"}, "64 --conflict-exit-code: '7x' is not a number from 0 to 255 (try --conflict-exit-code 0)"},
      {{"--ttl", "0"}, "64 --ttl: '0' is too short, at least 100ms (try --ttl 30s)"},
      {{"--ttl", "31d"}, "64 --ttl: '31d' is too long, at most 30d (try --ttl 30s)"},
      {{"--lease", "0"}, "64 --lease: '0' is too short, at least 100ms (try --lease auto or --lease 5m)"},
      {{"--lease", "soon"}, "64 --lease: 'soon' is not a duration (try --lease auto or --lease 5m)"},
      {{"--lease", "5m", "--ttl", "1m"},
       "64 --lease and --ttl exclude each other: a fixed lease is its own ttl (leave out --ttl)"},
      {{"--min-hold", "-1s"}, "64 --min-hold: '-1s' is not a duration (try --min-hold 1m)"},
      {{"--min-hold", "31d"}, "64 --min-hold: '31d' is too long, at most 30d (try --min-hold 1m)"},
      {{"--max-runtime", "0"}, "64 --max-runtime: '0' is too short, at least 1ms (try --max-runtime 1h)"},
      {{"--kill-after", "x"}, "64 --kill-after: 'x' is not a duration (try --kill-after 5s)"},
      {{"--signal", "FOO"}, "64 --signal: 'FOO' is not a signal (try --signal TERM)"},
      {{"--leftovers", "eat"}, "64 --leftovers: 'eat' is none of stop, wait, leave"},
      {{"--on-lost", ""}, "64 --on-lost: '' is none of stop, warn"},
      {{"-k", ""}, "64 --key: the key is empty (try -k stock)"},
      {{"--shards", "0"}, "64 --shards: '0' is not a number from 1 to 1024 (try --shards 5)"},
      {{"--shards", "1025"}, "64 --shards: '1025' is not a number from 1 to 1024 (try --shards 5)"},
      {{"--shards", "-1"}, "64 --shards: '-1' is not a number from 1 to 1024 (try --shards 5)"},
      {{"--shards", ""}, "64 --shards: it has no name (try --shards pixel-1,pixel-2)"},
      {{"--shards", "a,,b"}, "64 --shards: a name is empty (try --shards pixel-1,pixel-2)"},
      {{"--shards", "a,b, a"}, "64 --shards: the name 'a' is given twice (try --shards pixel-1,pixel-2)"},
      {{"--shards", "a,b\tc"}, "64 the key \"k:b\\tc\" has a control character in it (leave it out)"},
      {{"--shards", "a,b{"},
       "78 the key \"k:b{\" has a brace that would split the lock over two cluster slots (use none, or a pair with "
       "something between, such as {stock}:eu)"},
      {{"--shards", "@/nowhere/names"},
       "78 --shards: cannot read names from /nowhere/names: No such file or directory"},
      {{"--shards", "@/"}, "78 --shards: cannot read names from /: Is a directory"},
      {{"--shards", "a,b", "-k", "other"},
       "64 --shards is for one key: its locks are KEY:0, KEY:1 and so on (try -k stock --shards 5)"},
      {{"--shards", "5", "-k", "other"},
       "64 --shards is for one key: its locks are KEY:0, KEY:1 and so on (try -k stock --shards 5)"},
      {{"--frobnicate"}, "64 unknown option '--frobnicate' (rlock help run lists them)"},
      {{"-s", "-x"}, "64 --shared and --exclusive exclude each other (try one of them)"},
      {{"--sync", "-1"}, "64 --sync: '-1' is not a number from 0 to 1000 (try --sync 1)"},
      {{"--sync", "1", "-S", "redis://a", "-S", "redis://b"},
       "64 --sync is for the replicas of one server; several servers have none (leave out --sync)"},
      {{"--sync", "1", "-S", "postgresql:///app"},
       "64 --sync: rlock cannot ask PostgreSQL which replicas have a commit (leave out --sync, and set "
       "synchronous_standby_names on the server)"},
      {{"--sync", "1", "-S", "mysql:///app"},
       "64 --sync: rlock cannot ask MySQL which replicas have a commit (leave out --sync, and set up "
       "semi-synchronous replication)"},
      {{"--permits", "0"}, "64 --permits: '0' is not a number from 1 to 1000000 (try --permits 5)"},
      {{"--format", "hash"}, "64 --format: 'hash' is none of redisson, string, etcd, curator, kazoo"},
      {{"-s", "--format", "kazoo"}, "64 --shared and --format exclude each other (try one of them)"},
      {{"-x", "--format", "etcd"}, "64 --exclusive and --format exclude each other (try one of them)"},
      {{"--permits", "2", "--format", "curator", "-S", "zookeeper://a"},
       "64 --permits and --format exclude each other (try one of them)"},
      {{"-s", "--format", "curator", "-S", "zookeeper://a", "--min-hold", "1s"},
       "64 --min-hold: a lock with --format curator ends with the session of its rlock (leave out --min-hold, or let "
       "the job last longer)"},
      {{"--server-timeout", "0"}, "64 --server-timeout: '0' is too short, at least 1ms (try --server-timeout 5s)"},
  };
  for (const Row& row : rows) {
    CHECK(error_of(row.options) == row.expect);
  }
}

TEST_CASE("run: --shards takes a number, names, or a file of names")
{
  const auto keys_of = [](const std::string& shards) {
    const RunRequest request = request_with({"--shards", shards});
    CHECK((request.shard_names.empty() || request.shard_names.size() == request.shards.size()));
    std::string keys;
    for (std::size_t i = 0; i < request.shards.size(); ++i) {
      keys += (keys.empty() ? "" : " ") + request.shards[i].text();
      CHECK((request.shard_names.empty() || request.shards[i].text() == "k:" + request.shard_names[i]));
    }
    return keys;
  };
  CHECK(keys_of("3") == "k:0 k:1 k:2");
  CHECK(keys_of("3,") == "k:3");
  CHECK(keys_of("3x") == "k:3x");
  CHECK(keys_of("pixel-8, pixel-7 ,a b,usb:1,") == "k:pixel-8 k:pixel-7 k:a b k:usb:1");

  const std::filesystem::path file = test::make_temp_dir("shards") / "names";
  const auto with_file = [&](const std::string& text) {
    std::ofstream(file) << text;
    return "@" + file.string();
  };
  CHECK(keys_of(with_file("# phones\n\n pixel-7 \r\n\tpixel#8  # on the shelf\n3")) == "k:pixel-7 k:pixel#8 k:3");
  const std::string flaw = "78 --shards: " + file.string() + ": ";
  const std::string advice = " (one name a line; # begins a comment)";
  CHECK(error_of({"--shards", with_file("# none\n\n")}) == flaw + "it has no name" + advice);
  CHECK(error_of({"--shards", with_file("a\na\n")}) == flaw + "the name 'a' is given twice" + advice);
  CHECK(error_of({"--shards", with_file("a,b\n")}) == flaw + "the name 'a,b' has a comma in it" + advice);
  std::string many;
  for (std::size_t i = 0; i < most_shards; ++i) {
    many += "n" + std::to_string(i) + "\n";
  }
  CHECK(request_with({"--shards", with_file(many)}).shards.size() == most_shards);
  CHECK(error_of({"--shards", with_file(many + "one more")}) == flaw + "1025 names, at most 1024" + advice);
  CHECK(error_of({"--shards", with_file(std::string(2 << 20, '#'))}) ==
        "78 --shards: cannot read names from " + file.string() + ": it is too large for a list of names");
}

TEST_CASE("run: the key and the command are needed, and the key must be one")
{
  CHECK(request_of({"true"}, {}).error().text == "no key: name the lock with -k KEY (try -k stock)");
  CHECK(request_of({"-k", ""}, {}).error().text == "--key: the key is empty (try -k stock)");
  CHECK(request_of({"--prefix", "p", "-k", "", "true"}, {}).error().code == ErrorCode::usage);
  CHECK(resolve_flock({}, {"", "true"}, Environment({})).error().text ==
        "the key is empty (name a lock, such as stock)");
  CHECK(request_of({"-k", "a{}", "true"}, {}).error().code == ErrorCode::config);
  CHECK(request_of({"-k", std::string(1023, 'k'), "--shards", "2", "true"}, {}).error().code == ErrorCode::usage);
  CHECK(request_of({"-k", "k"}, {}).error().text == "no command to run (try rlock run -k k -- ./job.sh)");
}

TEST_CASE("run: the job's words and environment arrive as they were")
{
  const auto request = request_of({"-k", "k", "echo", "-n", "", "--", "hi"}, {"A=1", "B="});
  CHECK(request->argv == Args{"echo", "-n", "", "--", "hi"});
  CHECK(request->environment == Args{"A=1", "B="});
}

TEST_CASE("force-unlock: only a holder that was named or shown, and what grace it has")
{
  const auto meant = [](const Args& args) -> Result<ForceOptions> {
    RawForce typed;
    OptionTable known("force-unlock");
    add_force_options(known, typed);
    RETURN_IF_ERROR(operands_of(known, args, Operands::anywhere));
    return typed.options;
  };
  CHECK_FALSE(meant({"k"})->confirmed);
  CHECK(meant({"k", "--token", "a:1"})->confirmed);
  CHECK(meant({"k", "--token", "a:1"})->owner == Owner::of("a:1"));
  CHECK(meant({"k"})->grace == Millis{10'000});
  CHECK(meant({"k", "--grace", "0"})->grace == Millis{0});
  CHECK(meant({"k", "--now"})->grace == Millis{0});
  CHECK(meant({"k", "--now", "--grace", "0"})->grace == Millis{0});
  CHECK(meant({"k", "--now", "--grace", "1s"}).error().text ==
        "--now and --grace exclude each other (try --grace 10s alone)");
  CHECK(meant({"k", "--grace", "-1"}).error().text == "--grace: '-1' is not a duration (try --grace 10s)");
  CHECK(meant({"k", "--token", ""}).error().code == ErrorCode::usage);
  CHECK_FALSE(meant({"k", "--token", "a:1"})->older_than);
  CHECK(meant({"k", "--older-than", "2h"})->older_than == std::chrono::hours{2});
  CHECK_FALSE(meant({"k", "--older-than", "2h"})->confirmed);
  CHECK(meant({"k", "--older-than", "0"}).error().text ==
        "--older-than: '0' is too short, at least 1ms (try --older-than 1h)");
}
