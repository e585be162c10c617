// SPDX-License-Identifier: Apache-2.0
// `rlock acl -k 'app:*'` and locks of that name with a {tag} in it.
#include "support/acl_fixture.h"
#include "support/integration.h"

using namespace rlock::test;

namespace {

Words run_words(const Words& kind, const Words& rest) { return joined(joined({"run", "-k", "app:{t}:k"}, kind), rest); }

}  // namespace

ACL_CASE("acl: a pattern covers names with braces as well, with every kind of lock")
{
  fixture.allow(acl_line("app:*"));
  for (const Words& kind : std::vector<Words>{{}, {"-x"}, {"--permits", "1"}, {"--format", "string"}}) {
    CAPTURE(kind.empty() ? "" : kind.front());
    Process holder = fixture.start(run_words(kind, {"--", "sleep", "60"}));
    const auto is_held_now = [&] { return fixture.run({"status", "-k", "app:{t}:k"}).code == 0; };
    wait_until(is_held_now, "the lock is held", std::chrono::seconds(30));
    Process waiter = fixture.start(run_words(kind, {"--", "true"}));
    const auto waits = [&] { return has(fixture.run({"status", "-k", "app:{t}:k"}).out, "waiting"); };
    wait_until(waits, "the waiter is queued", std::chrono::seconds(30));
    CHECK(fixture.run({"list", "app:*"}).code == 0);
    holder.signal(SIGTERM);
    holder.wait(std::chrono::seconds(30));
    const Exit end = waiter.wait(std::chrono::seconds(30));
    CHECK_MESSAGE(end.code == 0, waiter.err());
    for (const std::string& text : {waiter.err(), holder.err()}) {
      CHECK_FALSE(has(text, "NOPERM"));
    }
    fixture.server.command({"FLUSHALL"});
  }
}
