// SPDX-License-Identifier: Apache-2.0
#include "cli/verbs/acquire.h"

#include "cli/output/output.h"
#include "cli/verbs/token_lock.h"
#include "redis/url.h"
#include "unit/typed_options.h"

#include <doctest/doctest.h>

using namespace rlock;
using namespace rlock::cli;
using namespace rlock::test;

namespace {

using Args = std::vector<std::string>;

Result<RunRequest> request_of(const Args& args)
{
  RawAcquire typed;
  OptionTable known("acquire");
  add_acquire_options(known, typed);
  ASSIGN_OR_RETURN(const auto operands, operands_of(known, args, Operands::anywhere));
  return resolve_acquire(typed, operands, Environment({}));
}

TokenLock claimed(const OptionText& key, const OptionText& token, const Args& environment)
{
  RawTokenLock typed;
  if (key) {
    typed.keys.keys = {*key};
  }
  typed.token = token;
  const Result<TokenLocks> claim = resolve_token_locks(typed, {}, Environment(environment));
  const Error why = claim ? Error{} : claim.error();
  REQUIRE_MESSAGE(claim, why.text);
  REQUIRE(claim->size() == 1);
  return claim->front();
}

ErrorCode fault_of(const OptionText& key, const OptionText& token, const Args& environment)
{
  RawTokenLock typed;
  if (key) {
    typed.keys.keys = {*key};
  }
  typed.token = token;
  return resolve_token_locks(typed, {}, Environment(environment)).error().code;
}

}  // namespace

TEST_CASE("acquire: the defaults, and every option has its meaning")
{
  const RunRequest kept = *request_of({"stock", "--pid", "42"});
  CHECK(kept.names.begin()->text() == "stock");
  CHECK(kept.ttl == Millis{30'000});
  CHECK_FALSE(kept.wait.has_value());
  CHECK(kept.busy_code == 75);
  CHECK(kept.sync == 0);
  REQUIRE(kept.watched);
  CHECK(kept.watched->pid == 42);
  CHECK(kept.stop_signal == SIGTERM);
  CHECK(kept.on_lost == OnLost::stop);
  CHECK_FALSE(kept.watched->has_pipe);
  CHECK(kept.kill_after == default_kill_after);
  CHECK(kept.leftovers == Leftovers::stop);

  const RunRequest exported = *request_of({"k", "--pid", "7", "--export", "--kill-after", "2s", "--leftovers", "wait"});
  CHECK(exported.watched->has_pipe);
  CHECK(exported.kill_after == Millis{2000});
  CHECK(exported.leftovers == Leftovers::wait);

  const RunRequest other = *request_of({"--pid=7", "-k", "k", "--ttl", "1m", "--signal", "USR1", "--on-lost", "warn",
                                        "-w", "5", "-E", "9", "--label", "me", "--sync", "2"});
  CHECK(other.ttl == Millis{60'000});
  CHECK(other.stop_signal == SIGUSR1);
  CHECK(other.on_lost == OnLost::warn);
  CHECK(other.wait == Millis{5000});
  CHECK(other.busy_code == 9);
  CHECK(other.label == "me");
  CHECK(other.sync == 2);

  std::string names;
  const RunRequest several = *request_of({"c", "-k", "b", "--pid", "7", "-k", "a"});
  for (const LockName& name : several.names) {
    names += name.text();
  }
  CHECK(names == "abc");

  const RunRequest leased = *request_of({"k", "-n", "--lease", "5m"});
  CHECK(leased.ttl == Millis{300'000});
  CHECK(leased.wait == Millis{0});
  CHECK_FALSE(leased.watched);
}

TEST_CASE("acquire: what cannot be meant names the option and shows a good value")
{
  struct Row {
    Args options;
    const char* expect;
  };
  const Row rows[] = {
      {{}, "--pid or --lease is needed: they say how long the lock lasts (try --pid $$, or --lease 5m)"},
      {{"--pid", "1", "--lease", "5m"},
       "--pid and --lease exclude each other: a lease has no keeper (try --pid $$ alone)"},
      {{"--pid", ""}, "--pid: '' is not a number from 1 to 2147483647 (try --pid $$)"},
      {{"--pid", "self"}, "--pid: 'self' is not a number from 1 to 2147483647 (try --pid $$)"},
      {{"--pid", "0"}, "--pid: '0' is not a number from 1 to 2147483647 (try --pid $$)"},
      {{"--lease", "auto"}, "--lease: 'auto' is not a duration (try --lease 5m)"},
      {{"--lease", "0"}, "--lease: '0' is too short, at least 100ms (try --lease 5m)"},
      {{"--pid", "1", "--ttl", "1ms"}, "--ttl: '1ms' is too short, at least 100ms (try --ttl 30s)"},
      {{"--lease", "5m", "--ttl", "5m"},
       "--lease and --ttl exclude each other: a lease is its own ttl (leave out --ttl)"},
      {{"--lease", "5m", "--signal", "TERM"},
       "--signal needs --pid: only a keeper tells of a loss (try --pid $$, or leave it out)"},
      {{"--lease", "5m", "--on-lost", "warn"},
       "--on-lost needs --pid: only a keeper tells of a loss (try --pid $$, or leave it out)"},
      {{"--pid", "1", "--signal", "NONE"}, "--signal: 'NONE' is not a signal (try --signal TERM)"},
      {{"--pid", "1", "--on-lost", "kill"}, "--on-lost: 'kill' is none of stop, warn"},
      {{"--pid", "1", "--export", "--json"}, "--export and --json exclude each other (try --export alone)"},
      {{"--lease", "5m", "--shards", "2"},
       "--shards needs --export or --json: only they print which lock was taken (try --export)"},
      {{"--ttl", "5m"}, "--ttl needs --pid (try --pid $$, or leave it out)"},
      {{"--pid", "1", "--kill-after", "1s"},
       "--kill-after needs --export: only then the keeper knows what the script has started (try --export)"},
      {{"--pid", "1", "--json", "--leftovers", "wait"},
       "--leftovers needs --export: only then the keeper knows what the script has started (try --export)"},
      {{"--lease", "5m", "--export", "--leftovers", "wait"},
       "--lease and --leftovers exclude each other: a lease has no keeper (try --pid $$)"},
      {{"--pid", "1", "--export", "--leftovers", "kill"}, "--leftovers: 'kill' is none of stop, wait, leave"},
      {{"-k", "a", "--lease", "5m", "-S", "redis://a", "-S", "redis://b", "-S", "redis://c"},
       "several keys have one token, and several servers would give each its own (try one -S, or one acquire for each "
       "key)"},
      {{"-k", "a", "--lease", "5m", "--shards", "2", "--json"},
       "--shards is for one key: its locks are KEY:0, KEY:1 and so on (try -k stock --shards 5)"},
  };
  for (Row row : rows) {
    row.options.insert(row.options.begin(), "k");
    const auto request = request_of(row.options);
    REQUIRE_FALSE(request);
    CHECK(request.error().text == row.expect);
    CHECK(request.error().code == ErrorCode::usage);
  }
}

TEST_CASE("a claim: what was not typed comes from the environment, and a token from its own key")
{
  const Args job{"RLOCK_KEY=b", "RLOCK_TOKEN=o2:2", "RLOCK_HELD=o0:0 b\no1:1 a c\no2:2 b"};
  CHECK(claimed({}, {}, job).name.text() == "b");
  CHECK(claimed({}, {}, job).hold.owner == Owner::of("o2:2"));
  CHECK(claimed("a c", {}, job).hold.owner == Owner::of("o1:1"));
  CHECK(claimed("b", "t", job).hold.owner == Owner::of("t"));
  CHECK(claimed({}, "t", job).name.text() == "b");
  CHECK(claimed("z", {}, {"RLOCK_TOKEN=o:1"}).hold.owner == Owner::of("o:1"));
  CHECK(claimed("z", {}, {"RLOCK_KEY=z", "RLOCK_TOKEN=o:1"}).hold.owner == Owner::of("o:1"));

  CHECK(fault_of({}, {}, {}) == ErrorCode::usage);
  CHECK(resolve_token_locks({}, {}, Environment({})).error().text ==
        "no key, and this shell holds no lock (eval the output of rlock acquire --export first, or give -k KEY and "
        "--token TOKEN, which rlock acquire printed)");
  CHECK(fault_of("z", {}, job) == ErrorCode::usage);  // the token belongs to another lock
  CHECK(fault_of("b", "", job) == ErrorCode::usage);
  CHECK(fault_of({}, "t", {"RLOCK_KEY=a\x01"}) == ErrorCode::config);
}

TEST_CASE("a claim: all keys of one token, of those that were typed, or that RLOCK_KEY was taken together with")
{
  const auto keys_of = [](const Args& typed, const OptionText& token, const Args& environment) {
    RawTokenLock raw;
    raw.token = token;
    std::string text;
    const TokenLocks locks = *resolve_token_locks(raw, typed, Environment(environment));
    for (const TokenLock& lock : locks) {
      text += lock.name.text() + "=" + lock.hold.token() + " ";
    }
    return text;
  };
  const Args script{"RLOCK_KEY=a", "RLOCK_TOKEN=o1:1", "RLOCK_HELD=o0:0 z\no1:1 a\no1:1 b\no2:2 c"};
  CHECK(keys_of({}, {}, script) == "a=o1:1 b=o1:1 ");
  CHECK(keys_of({}, "o1:1", script) == "a=o1:1 b=o1:1 ");
  CHECK(keys_of({}, "o2:2", script) == "c=o2:2 ");  // not that of RLOCK_KEY, which was taken later
  CHECK(keys_of({}, "x", script) == "a=x ");
  CHECK(keys_of({"b"}, {}, script) == "b=o1:1 ");
  CHECK(keys_of({"b", "z", "b"}, {}, script) == "b=o1:1 z=o0:0 ");
  CHECK(keys_of({"x", "y"}, "t", {}) == "x=t y=t ");
}

TEST_CASE("export: the line that opens the pipe of the keeper")
{
  CHECK(pipe_line({.path = "/proc/12/fd/7", .descriptor = 9}) == "exec 9>|/proc/12/fd/7 || exit; printf . >&9\n");
}

TEST_CASE("export: quoted for every shell")
{
  CHECK(shell_quoted("") == "''");
  CHECK(shell_quoted("a b$`\"\\") == "'a b$`\"\\'");
  CHECK(shell_quoted("it's") == R"('it'\''s')");
}

TEST_CASE("export: a word to be copied is quoted only where that is needed, and has no control characters")
{
  CHECK(copied_word("8743c9c0-0795:1") == "8743c9c0-0795:1");
  CHECK(copied_word("") == "''");
  CHECK(copied_word("a b") == "'a b'");
  CHECK(copied_word("it's") == R"('it'\''s')");
  CHECK(copied_word(R"(\n)") == R"('\n')");
  CHECK(copied_word("a\n\x1b'\xff\\") == R"($'a\n\x1b\x27\xff\\')");
}

TEST_CASE("export: the names of a job's environment, and the key's earlier tokens are forgotten")
{
  const LockName name = *LockName::parse("it's");
  const Owner owner = Owner::of("o:1");
  const JobServer server{.urls = parse_url("redis://u:secret@h:1")->without_passwords()};
  const JobLocks lock{.held = {{name, owner, Millis{30'000}}}, .server = server};
  CHECK(export_lines(lock, 7, Environment({"RLOCK_HELD=x:1 it's\ny:1 b", "RLOCK_SERVER=redis://other"})) ==
        "export RLOCK_KEY='it'\\''s';\n"
        "export RLOCK_TOKEN='o:1';\n"
        "export RLOCK_FENCE='7';\n"
        "export RLOCK_LEASE_MS='30000';\n"
        "export RLOCK_SERVER='redis://u@h:1';\n"
        "export RLOCK_HELD=\"$(printf '%s\\n' 'y:1 b' 'o:1 it'\\''s')\";\n");

  const auto lines = [&](const char* known) { return export_lines(lock, 7, Environment({known})); };
  const auto has_server = [](const std::string& text) { return text.find("RLOCK_SERVER") != std::string::npos; };
  CHECK_FALSE(has_server(lines("RLOCK_SERVER=redis://u:secret@h:1")));  // a password would be lost
  CHECK(has_server(lines("RLOCK_SERVER=redis://h:1")));
  CHECK(has_server(lines("RLOCK_SERVER=redis://u:secret@h:2")));
}

TEST_CASE("export: of several locks, RLOCK_HELD has all and the others are about the first")
{
  const JobLocks locks{.held = {{*LockName::parse("a"), Owner::of("o:1"), Millis{30'000}},
                                {*LockName::parse("b"), Owner::of("o:1"), Millis{30'000}}},
                       .server = {.urls = "redis://h:1"}};
  const std::string lines = export_lines(locks, 7, Environment({"RLOCK_HELD=x:1 b\ny:1 c\nz:1 a"}));
  CHECK(lines.find("export RLOCK_KEY='a';\nexport RLOCK_TOKEN='o:1';\nexport RLOCK_FENCE='7';\n") == 0);
  CHECK(lines.find("export RLOCK_HELD=\"$(printf '%s\\n' 'y:1 c' 'o:1 a' 'o:1 b')\";\n") != std::string::npos);
}

TEST_CASE("export: the file of the password, and nothing that comes before it")
{
  JobLocks lock{.held = {{*LockName::parse("k"), Owner::of("o:1"), Millis{1}}}, .server = {"redis://h:1"}};
  const auto tail = [&](const std::vector<std::string>& known) {
    const std::string lines = export_lines(lock, 7, Environment(known));
    return lines.substr(lines.find("o:1 k';\n") + 8);
  };
  CHECK(tail({"RLOCK_PASSWORD=x", "RLOCK_PASSWORD_FILE=/y"}).empty());
  lock.server.password_file = "/etc/pass word";
  CHECK(tail({}) == "export RLOCK_PASSWORD_FILE='/etc/pass word';\n");
  CHECK(tail({"RLOCK_PASSWORD=x"}) == "unset RLOCK_PASSWORD;\nexport RLOCK_PASSWORD_FILE='/etc/pass word';\n");
  lock.server.password_file = "";  // a pipe
  CHECK(tail({"RLOCK_PASSWORD_FILE=/y"}) == "unset RLOCK_PASSWORD_FILE;\n");
}

TEST_CASE("export: a nested lock leaves the outer one where it is")
{
  const JobServer server{.urls = "redis://h:1"};
  const std::string token = "o:1/8743c9c0-0795-4907-87fd-6c719a6b4586:1";
  const JobLocks lock{.held = {{*LockName::parse("k"), Hold::of_token(token), Millis{30'000}}}, .server = server};
  const std::string lines = export_lines(lock, 7, Environment({"RLOCK_HELD=o:1 k"}));
  CHECK(lines.find("export RLOCK_TOKEN='" + token + "';\n") != std::string::npos);
  CHECK(lines.find("export RLOCK_HELD=\"$(printf '%s\\n' 'o:1 k' '" + token + " k')\";\n") != std::string::npos);
}
