// SPDX-License-Identifier: Apache-2.0
// `rlock acl`: without any one of the printed rules some request fails and names the missing rule.
#include "support/acl_fixture.h"
#include "support/integration.h"

#include <cctype>

using namespace rlock::test;

namespace {

// One run of each kind, and of a key with braces, whose own keys have other names.
const std::vector<Words> kinds{{"run", "-k", "app:k"},
                               {"run", "-s", "-k", "app:k"},
                               {"run", "-x", "-k", "app:k"},
                               {"run", "--permits", "2", "-k", "app:p"},
                               {"run", "--format", "string", "-k", "app:k"},
                               {"once", "--for", "1ms", "-k", "app:o"},
                               {"run", "-k", "app:{t}:k"},
                               {"run", "-s", "-k", "app:{t}:k"},
                               {"run", "--permits", "2", "-k", "app:{t}:p"},
                               {"run", "--format", "string", "-k", "app:{t}:k"},
                               {"once", "--for", "1ms", "-k", "app:{t}:o"}};

bool names(const Finished& end, const std::string& rule)
{
  std::string said = end.err;
  if (rule[0] == '+') {
    std::transform(said.begin(), said.end(), said.begin(), [](unsigned char c) { return std::tolower(c); });
  }
  return has(said, rule.substr(1, rule.find_first_of("*|") - 1));
}

Words without(Words line, std::size_t at)
{
  line.erase(line.begin() + static_cast<std::ptrdiff_t>(at));
  return line;
}

void check_all_go_away(const AclFixture& fixture)
{
  for (const std::string& key : as_texts(fixture.server.command({"KEYS", "*"}))) {
    const bool lasts = key == "app:p" || key == "{app:p}:timeout" || key == "app:{t}:p" || key == "app:{t}:p:timeout";
    CHECK_MESSAGE((lasts || as_int(fixture.server.command({"PTTL", key})) > 0), key << " has no ttl");
  }
}

// No lock is held, and every key has a ttl; only the number of permits stays.
void check_nothing_half_written(const AclFixture& fixture)
{
  check_all_go_away(fixture);
  CHECK(fixture.exists("app:k") == 0);
  CHECK(fixture.exists("app:o") == 0);
  CHECK(fixture.exists("{app:p}:timeout") == 0);
  CHECK(fixture.exists("app:{t}:k") == 0);
  CHECK(fixture.exists("app:{t}:o") == 0);
}

// The rules without the word at `at`: each kind either works or names the missing right.
int kinds_refused_without(const AclFixture& fixture, const Words& line, std::size_t at)
{
  const std::string rule = line[at];
  CAPTURE(rule);
  fixture.allow(without(line, at));
  int refused = 0;
  for (Words words : kinds) {
    words.insert(words.end(), {"--", "true"});
    const Finished end = fixture.run(words);
    if (end.code == 0 && end.err == "") {
      continue;
    }
    ++refused;
    CAPTURE(end.err);
    CHECK((end.code == 77 || end.code == 0));
    CHECK(names(end, rule));
    check_nothing_half_written(fixture);
    fixture.server.command({"FLUSHALL"});
  }
  return refused;
}

// Of the list of runs that outlives the event log.
bool is_of_runs(const std::string& rule) { return rule.starts_with("~rlock:runs:"); }

// The waiter can only give up or report the missing right.
bool is_refused_waiting(const AclFixture& fixture, Words words, const std::string& rule)
{
  CAPTURE(rule);
  CAPTURE(words.back());
  words.insert(words.begin(), "run");
  words.insert(words.end(), {"-w", "30ms", "--", "echo", "ran"});
  const Finished end = fixture.run(words);
  CAPTURE(end.err);
  CHECK((end.code == 75 || end.code == 77));
  CHECK(end.out == "");
  CHECK((end.code == 75 || names(end, rule)));
  check_all_go_away(fixture);
  return end.code == 77;
}

}  // namespace

ACL_CASE("acl: a lock outside the pattern is refused, and named")
{
  fixture.allow(acl_line("app:*"));
  expect_end(fixture.run({"run", "-k", "web:k", "--", "echo", "ran"}), 77, {out_is(""), err_has(": web:k (")});
  CHECK(as_int(fixture.server.command({"DBSIZE"})) == 0);
}

ACL_CASE("acl: each key and channel is needed, named when it is missing, and nothing is half written")
{
  const Words line = acl_line("app:*");
  for (std::size_t at = 0; at < line.size(); ++at) {
    if (line[at] == "~rlock:quorum" || is_of_runs(line[at])) {
      continue;  // a single server has no marker, and a job needs no list of runs
    }
    if (line[at][0] == '~') {
      CHECK_MESSAGE(kinds_refused_without(fixture, line, at) > 0, line[at]);
    } else if (line[at][0] == '&') {
      kinds_refused_without(fixture, line, at);  // a waiter needs rights that a job without a wait does not
    }
  }
}

ACL_CASE("acl: without the right to the list of runs a job runs, and -v says what is missing")
{
  Words line = acl_line("app:*");
  std::erase_if(line, is_of_runs);
  fixture.allow(line);
  expect_end(fixture.run({"run", "-k", "app:k", "-v", "--history", "30d", "--", "sh", "-c", "exit 3"}), 3,
             {err_has("cannot keep the history of app:k")});
}

ACL_CASE("acl: each command that is missing is named, and nothing is half written")
{
  const Words line = acl_line("app:*");
  int needed = 0;
  for (std::size_t at = 0; at < line.size(); ++at) {
    if (line[at][0] == '+') {
      needed += kinds_refused_without(fixture, line, at) > 0 ? 1 : 0;
    }
  }
  CHECK(needed > 20);
}

ACL_CASE("acl: a missing right is reported while waiting as well, and no key is left")
{
  const Words line = acl_line("app:*");
  const std::vector<Words> kinds_of_waiters{{"-k", "app:h"}, {"-s", "-k", "app:x"}, {"--permits", "1", "-k", "app:p"}};
  for (Words words : kinds_of_waiters) {
    const std::string rival = words.front() == "-s" ? "-x" : words.front();
    words.front() = rival;
    words.insert(words.begin(), {"acquire", "-S", fixture.server.url(), "--lease", "1h"});
    REQUIRE(run_rlock(words).code == 0);
  }
  int refused = 0;
  for (std::size_t at = 0; at < line.size(); ++at) {
    if (line[at][0] == '+' || line[at][0] == '&') {
      fixture.allow(without(line, at));
      for (const Words& kind : kinds_of_waiters) {
        refused += is_refused_waiting(fixture, kind, line[at]) ? 1 : 0;
      }
    }
  }
  CHECK(refused > 15);
}

TEST_CASE("acl: the rule line has no password, and JSON has its parts")
{
  const Words line = acl_line("app:*");
  CHECK(line[0] + " " + line[1] + " " + line[2] == "ACL SETUSER shop");
  for (const std::string& word : line) {
    CHECK(word[0] != '>');
    CHECK(word != "nopass");
  }
  const Finished json = run_rlock({"acl", "--json", "--prefix", "a*:", "b"});
  CHECK(json.out.starts_with(R"({"user":"rlock","keys":["a\\*:b",)"));
  CHECK(has(json.out, R"("line":"ACL SETUSER rlock on resetkeys )"));
  CHECK(run_rlock({"acl"}).code == 64);
  CHECK(run_rlock({"acl", "-k", "a", "--user", "a b"}).code == 64);
}
