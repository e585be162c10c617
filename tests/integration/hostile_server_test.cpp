// SPDX-License-Identifier: Apache-2.0
// A malicious server: whatever it says, rlock ends in time with the right code and one clear line, needs little memory, runs no
// job, and lets no control character through.
#include "support/hostile_server.h"
#include "support/clean_text.h"
#include "support/integration.h"

#include <span>

using namespace rlock::test;

namespace {

// The sanitizers reserve an address space of their own.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr const char* memory_limit = "true";
#else
// What rlock maps at its start, and 64 MiB more.
constexpr const char* memory_limit = "ulimit -v 131072";
#endif

// rlock with a memory limit and --server-timeout 1s. A job would print "the-job-ran".
Words limited(Words words, const std::string& url)
{
  words.insert(words.begin() + 1, {"-S", url, "--server-timeout", "1s"});
  Words argv = rlock_argv(words);
  argv.insert(argv.begin(), {"sh", "-c", std::string(memory_limit) + R"( && exec "$@")", "sh"});
  return argv;
}

struct Verb {
  Words words;
  bool many_lines = false;     // a report
  bool for_collector = false;  // tells by a metric, and not by its exit code, that no server answers
};
const Verb verbs[] = {
    {{"run", "-k", "k", "--", "echo", "the-job-ran"}},
    {{"run", "-n", "-s", "-k", "k", "--", "echo", "the-job-ran"}},
    {{"run", "-w", "1s", "-k", "a", "-k", "b", "--", "echo", "the-job-ran"}},
    {{"run", "-n", "--permits", "2", "--shards", "3", "-k", "k", "--", "echo", "the-job-ran"}},
    {{"once", "--for", "1h", "-n", "-k", "k", "--", "echo", "the-job-ran"}},
    {{"flock", "-n", "k", "echo", "the-job-ran"}},
    {{"acquire", "-n", "--lease", "5s", "k"}},
    {{"status", "k"}},
    {{"status", "--json", "k"}},
    {{"status", "-o", "prometheus", "k"}, false, true},
    {{"list"}},
    {{"ttl", "k"}},
    {{"wait", "-w", "1s", "k"}},
    {{"events", "k"}},
    {{"events"}},
    {{"force-unlock", "k", "--yes", "--grace", "1s"}},
    {{"check", "k", "--token", "8743c9c0:1"}},
    {{"renew", "k", "--token", "8743c9c0:1"}},
    {{"release", "k", "--token", "8743c9c0:1"}},
    {{"watch"}},
    {{"doctor"}, true},
};

struct Harm {
  const char* name;
  Behavior script;
};

const Harm lengths[] = {
    {"a huge text", says("$999999999999\r\n")},
    {"a huge array", says("*2147483647\r\n")},
    {"negative lengths", says("*-9223372036854775808\r\n$-9223372036854775808\r\n")},
};
const Harm parts[] = {
    {"half a reply", says("*4\r\n$7\r\ngran")},
    {"a byte at a time", drips("$100000\r\nxxxx")},
    {"another protocol", says("HTTP/1.1 400 Bad Request\r\nContent-Type: text/html\r\n\r\n")},
    {"nothing at all", says("")},
};
const Harm endless[] = {
    {"no end of a line", says_for_ever("+", "x")},
    {"no end of a text", says_for_ever("$500000000\r\n", "x")},
    {"an endless array", says_for_ever("*2147483647\r\n", ":1\r\n")},
    {"endless nesting", says_for_ever("", "*1\r\n")},
    {"arrays in arrays", says_for_ever("", "*8\r\n*100000\r\n$0\r\n\r\n")},
};
const Harm types[] = {
    {"replies before the request", says_for_ever("", "+OK\r\n")},
    {"numbers", says_for_ever("", ":-9223372036854775808\r\n")},
    {"nothing but nil", says_for_ever("", "*-1\r\n")},
    {"a type of RESP3", says_for_ever("", "%2147483647\r\n")},
    {"escapes in an error", says_for_ever("",
                                          "-ERR \x1b]0;owned\x07 \xc2\x9b"
                                          "2J \xff\x7f\r\n")},
    {"escapes in a text", says_for_ever("", "$7\r\n\x1b[2J\n\xff\x07\r\n")},
};

void check_end(const Verb& verb, Process& rlock)
{
  // The bound: --server-timeout for the request, as much for taking back what may have been granted, and as much for --wait
  // and --grace; the rest is for this machine.
  const Exit exit = rlock.wait(12s);
  const std::string err = rlock.err();
  const bool is_told = verb.for_collector && exit == success && rlock.out().ends_with("rlock_up 0\n");
  CHECK_MESSAGE((is_told || (exit.signal == 0 && exit.code >= 69 && exit.code <= 78)), show(exit) << " " << err);
  CHECK_FALSE(has(rlock.out(), "the-job-ran"));
  CHECK(is_clean(rlock.out()));
  CHECK_MESSAGE(is_clean(err), err);
  CHECK_MESSAGE((verb.many_lines || err.starts_with("rlock: ")), err);
  CHECK_MESSAGE((verb.many_lines || count(err, "\n") == 1), err);
  CHECK(err.size() < 2000);
}

// Every verb at once, because most of them wait for the server.
void check_all_verbs(std::span<const Harm> harms)
{
  for (const Harm& harm : harms) {
    CAPTURE(std::string(harm.name));
    const HostileServer server(harm.script);
    std::vector<Process> running;
    for (const Verb& verb : verbs) {
      running.emplace_back(limited(verb.words, server.url()));
    }
    for (std::size_t i = 0; i < running.size(); ++i) {
      CAPTURE(verbs[i].words.front());
      check_end(verbs[i], running[i]);
    }
  }
}

}  // namespace

TEST_CASE("hostile: no length harms a verb") { check_all_verbs(lengths); }

TEST_CASE("hostile: no part of a reply harms a verb") { check_all_verbs(parts); }

TEST_CASE("hostile: no endless reply harms a verb") { check_all_verbs(endless); }

TEST_CASE("hostile: no reply of a wrong type harms a verb") { check_all_verbs(types); }

TEST_CASE("hostile: a scan that goes round in circles ends list, watch, events and the metrics with one line")
{
  const HostileServer server(answers_by_word(
      {{.word = "EVALSHA", .reply = "*1\r\n$1\r\n7\r\n"}, {.word = "SCAN", .reply = "*2\r\n$1\r\n7\r\n*0\r\n"}}));
  for (const Words& words : {Words{"list"}, Words{"list", "app:*"}, Words{"list", "-o", "prometheus"}, Words{"watch"},
                             Words{"watch", "--json"}, Words{"events"}}) {
    CAPTURE(words.front());
    Process rlock(limited(words, server.url()));
    expect_end(rlock, exited(70), {out_is("")}, plenty * 3);
    const std::string err = rlock.err();
    CHECK_MESSAGE((has(err, "SCAN does not end") && count(err, "\n") == 1), err);
  }
}
