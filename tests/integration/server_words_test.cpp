// SPDX-License-Identifier: Apache-2.0
// Replies of server versions that are not available here.
#include "support/integration.h"
#include "support/relay.h"

using namespace rlock::test;

namespace {

struct Saying {
  const char* reply;
  int code;  // of an acquire
  const char* says;
};
const Saying sayings[] = {
    {"-DENIED Redis is running in protected mode because protected mode is enabled and no password is set.", 77,
     "(it is in protected mode; set a password there)"},
    {"-ERR ACL failure in script: User shop has no permissions to run the 'hmget' command", 77, "'hmget' command"},
    {"-ERR Error running script (call to f_1f): @user_script:1: @user_script: 1: -MISCONF Redis is configured to save",
     69, "(it cannot save to disk; see its log)"},
    {"-UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)", 69,
     "(it has become a replica)"},
    {"-ERR WAIT cannot be used with replica instances. Please also note that writes to replicas are just local", 69,
     "(it has become a replica)"},
    {"-ERR unknown command 'EVALSHA', with args beginning with: 'f00' '11' 'k'", 69,
     "(a command that rlock needs is renamed or switched off there)"},
    {"-ERR max number of clients + cluster connections reached", 69, "(raise maxclients there)"},
};

std::string job_until(const std::filesystem::path& go)
{
  return "until test -e " + go.string() + "; do sleep 0.02; done";
}

}  // namespace

TEST_CASE("words: what a server says is told when it is met, and ridden out when it passes")
{
  for (const Saying& saying : sayings) {
    CAPTURE(std::string(saying.reply));
    const RedisServer server;
    Relay relay(server);
    const auto go = make_temp_dir("words") / "go";

    relay.answer(saying.reply + std::string("\r\n"));
    expect_end(run_rlock({"run", "-S", relay.url(), "-k", "k", "--", "echo", "ran"}), saying.code,
               {out_is(""), err_has(saying.says)});
    CHECK(as_int(server.command({"DBSIZE"})) == 0);

    relay.forward();
    Process job =
        start_rlock({"run", "-v", "-S", relay.url(), "-k", "k", "--ttl", "3s", "--", "sh", "-c", job_until(go)});
    wait_until([&] { return is_held(server); }, "it is held");
    relay.answer(saying.reply + std::string("\r\n"));
    wait_until([&] { return has(job.err(), saying.says); }, "a renewal has met it");
    relay.forward();
    wait_until([&] { return as_int(server.command({"PTTL", "k"})) > 2500; }, "it is renewed");
    std::ofstream(go).close();
    CHECK_MESSAGE(job.wait() == Exit{0}, job.err());
    CHECK_FALSE(is_held(server));
  }
}
