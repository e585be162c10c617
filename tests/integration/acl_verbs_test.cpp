// SPDX-License-Identifier: Apache-2.0
// A user who has exactly what `rlock acl` prints: every verb works, with every kind of lock.
#include "support/acl_fixture.h"
#include "support/integration.h"
#include "support/job_lines.h"
#include "support/scripted_server.h"

using namespace rlock::test;

namespace {

struct Kind {
  Words options;
  Words rival;                // has to wait for it
  std::string key = "app:k";  // the lock itself, where `-k app:k` is taken
};

const std::vector<Kind> kinds{{{}, {}},
                              {{"-s"}, {"-x"}},
                              {{"-x"}, {"-s"}},
                              {{"--permits", "1"}, {"--permits", "1"}},
                              {{"--format", "string"}, {"--format", "string"}},
                              {{"--shards", "1"}, {"--shards", "1"}, "app:k:0"}};

Words run_words(const Words& options, const Words& rest)
{
  return joined(joined({"run", "-k", "app:k"}, options), rest);
}

std::string shown(const Words& words)
{
  std::string text;
  for (const std::string& word : words) {
    text += word + " ";
  }
  return text;
}

// Checks the exit code, and that no message is about the ACL.
void ends_with(int code, const AclFixture& fixture, const Words& words)
{
  const Finished end = fixture.run(words);
  CHECK_MESSAGE(end.code == code, shown(words) << ": " << end.err);
  CHECK_MESSAGE(!has(end.err, " says: "), shown(words) << ": " << end.err);
}

std::size_t listeners(const AclFixture& fixture, const std::string& key)
{
  return as_texts(fixture.server.command({"PUBSUB", "CHANNELS", "rlock:owner:{" + key + "}:*"})).size();
}

// Lets the first lease pass.
void check_renewed(Process& holder, Instant taken, Millis ttl)
{
  wait_until([&] { return real_clock.now() > taken + ttl + 200ms; }, "the first lease is over");
  CHECK_MESSAGE(holder.running(), holder.err());
}

void hold_show_and_force(const AclFixture& fixture, const Kind& kind)
{
  const Words job{"--ttl", "3s", "--", "sleep", "60"};
  const Instant taken = real_clock.now();
  Process holder = fixture.start(run_words(kind.options, job));
  wait_until([&] { return listeners(fixture, kind.key) == 1; }, "it is held, and its watchdog listens");
  check_renewed(holder, taken, 3s);
  ends_with(0, fixture, {"status", "-k", kind.key});
  ends_with(0, fixture, {"ttl", "-k", kind.key});
  ends_with(0, fixture, {"list", "app:*"});
  ends_with(75, fixture, {"wait", "-n", "-k", kind.key});
  ends_with(75, fixture, run_words(kind.rival, {"-n", "--", "true"}));

  Process waiter = fixture.start(run_words(kind.rival, {"--", "true"}));
  wait_until([&] { return listeners(fixture, kind.key) == 2; }, "another waits");
  Process looker = fixture.start({"wait", "-k", kind.key});
  ends_with(0, fixture, {"force-unlock", "--yes", "-k", kind.key});
  CHECK(holder.wait() == Exit{121});
  CHECK_MESSAGE(waiter.wait() == Exit{0}, waiter.err());
  CHECK_MESSAGE(looker.wait() == Exit{0}, looker.err());
  CHECK(waiter.complaints() == "");
}

void by_hand(const AclFixture& fixture, const Kind& kind)
{
  const Finished acquired = succeeded(fixture.run(joined({"acquire", "-k", "app:k", "--lease", "1m"}, kind.options)));
  const Words claim{"-k", "app:k", "--token", first_line(acquired.out)};
  ends_with(0, fixture, joined({"check"}, claim));
  ends_with(0, fixture, joined({"renew"}, claim));
  ends_with(0, fixture, joined({"release"}, claim));
  const Finished broken = succeeded(fixture.run(joined({"acquire", "-k", "app:k", "--lease", "1m"}, kind.options)));
  ends_with(0, fixture, {"force-unlock", "--now", "--token", first_line(broken.out), "-k", "app:k"});
}

}  // namespace

ACL_CASE("acl: with exactly this line every verb works with every kind")
{
  fixture.allow(acl_line("app:*"));
  for (const Kind& kind : kinds) {
    CAPTURE(shown(kind.options));
    ends_with(0, fixture, run_words(kind.options, {"--", "true"}));
    ends_with(0, fixture, run_words(kind.options, {"--", "true"}));
    ends_with(1, fixture, {"status", "-k", kind.key});
    ends_with(1, fixture, {"ttl", "-k", kind.key});
    ends_with(1, fixture, {"list", "app:*"});
    ends_with(0, fixture, {"wait", "-k", kind.key});
    hold_show_and_force(fixture, kind);
    if (kind.key == "app:k") {
      by_hand(fixture, kind);
    }
    fixture.server.command({"FLUSHALL"});
  }
}

ACL_CASE("acl: with exactly this line once, several keys and nested runs work")
{
  fixture.allow(acl_line("app:*"));
  ends_with(0, fixture, {"once", "--for", "1h", "-k", "app:k", "--", "true"});
  ends_with(0, fixture, {"once", "--for", "1h", "-k", "app:k", "--", "false"});
  ends_with(0, fixture, {"run", "-k", "app:a", "-k", "app:b", "--", "true"});
  for (const Words& kind : std::vector<Words>{{}, {"-s"}, {"-x"}, {"--permits", "2"}, {"--format", "string"}}) {
    const Words inner =
        rlock_argv(joined(joined({"run", "-S", fixture.url(), "-n", "-k", "app:n"}, kind), {"--", "true"}));
    ends_with(0, fixture, joined({"run", "-k", "app:n"}, with_job(kind, inner)));
    fixture.server.command({"FLUSHALL"});
  }
}

ACL_CASE("acl: with exactly this line a lock is given back, or a server not counted, for other reasons than rights")
{
  fixture.allow(acl_line("app:*"));
  expect_end(fixture.run({"run", "--sync", "1", "--server-timeout", "1s", "-k", "app:k", "--", "true"}), 69,
             {err_has("0 of the 1 replicas")});

  const AclFixture second;
  second.allow(acl_line("app:*"));
  expect_end(fixture.run({"run", "-S", second.url(), "-n", "-k", "app:k", "--", "true"}), 69,
             {err_has("--no-restart-guard")});
  ends_with(0, fixture, {"run", "-S", second.url(), "--no-restart-guard", "-k", "app:k", "--", "true"});
}

ACL_CASE("acl: with exactly this line a verb that reads all locks says how to name some")
{
  fixture.allow(acl_line("app:*"));
  REQUIRE(show(fixture.server.command({"HSET", "other", "somebody:1", "1"})) == "1");
  REQUIRE(show(fixture.server.command({"HSET", "rlock:holder:{other}", "somebody:1", "host=h"})) == "1");
  REQUIRE(show(fixture.server.command({"RPUSH", "rlock:events:{other}", "1"})) == "1");
  for (const Words& words : {Words{"list"}, Words{"list", "--all"}, Words{"history"}, Words{"thaw", "--all"},
                             Words{"status"}, Words{"list", "-o", "prometheus"}}) {
    CAPTURE(shown(words));
    expect_end(fixture.run(words), 77,
               {err_has("; name the locks that this user may read: rlock " + words.front() + " 'app:*')")});
  }
  ends_with(1, fixture, {"list", "app:*"});
  CHECK_FALSE(has(fixture.run({"status", "other"}).err, "name the locks"));
}
