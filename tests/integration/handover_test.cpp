// SPDX-License-Identifier: Apache-2.0
// A job that begins on the message of a hand-over, and whose lease is confirmed later.
#include "engine/script_call.h"
#include "redis/redis_store.h"
#include "support/integration.h"
#include "support/job_runner.h"
#include "support/relay.h"

using namespace rlock::test;

namespace {

Process start(const std::string& url, const Words& options, const Words& job)
{
  return start_run(url, joined({"-k", "k"}, options), job);
}

// What a server is asked, from the return of the constructor on.
class Monitor {
 public:
  explicit Monitor(const RedisServer& server) : m_process({"redis-cli", "-s", server.socket_path().string(), "monitor"})
  {
    wait_until([&] { return has(m_process.out(), "OK"); }, "the monitor listens");
  }
  [[nodiscard]] std::string heard() const { return m_process.out(); }
  [[nodiscard]] bool has_heard(const std::string& text) const { return has(m_process.out(), text); }

 private:
  Process m_process;
};

bool has_subscribed(const RedisServer& server, const Process& rlock)
{
  const std::string channel = "rlock:owner:{k}:*:" + std::to_string(rlock.pid());
  return !as_texts(server.command({"PUBSUB", "CHANNELS", channel})).empty();
}

// A holder, and a waiter that has subscribed.
struct Pair {
  RedisServer server;
  Process holder;
  Process waiter;

  Pair(RedisOptions options, const Words& kind, const Words& job, const std::string& waiters_url = "")
      : server(std::move(options)), holder(hold(kind)), waiter(wait(kind, job, waiters_url))
  {
  }
  Process hold(const Words& kind) const
  {
    Process process = start(server.url(), kind, {"sleep", "100"});
    wait_until([&] { return as_int(server.command({"EXISTS", "rlock:holder:{k}"})) == 1; }, "the lock is held");
    return process;
  }
  Process wait(const Words& kind, const Words& job, const std::string& url) const
  {
    Process process = start(url.empty() ? server.url() : url, kind, job);
    wait_until([&] { return has_subscribed(server, process); }, "the waiter has subscribed");
    return process;
  }
};

const std::vector<Words> kinds{{}, {"-s"}, {"-x"}, {"--permits", "1"}, {"--format", "string"}};

const Script& acquire_of(const Words& options)
{
  const LockKind kind = options.empty()             ? LockKind(Plain{})
                        : options[0] == "-s"        ? LockKind(Reader{})
                        : options[0] == "-x"        ? LockKind(Writer{})
                        : options[0] == "--permits" ? LockKind(Permits{1})
                                                    : LockKind(StringLock{});
  return scripts_of(kind).acquire;
}

}  // namespace

TEST_CASE("hand-over: a job begins without a further request, in every kind")
{
  for (Words kind : kinds) {
    CAPTURE(kind.empty() ? "" : kind.front());
    const bool reads = !kind.empty() && kind[0] == "-s";
    Pair pair({}, reads ? Words{"-x"} : kind, {"true"});
    const Monitor monitor(pair.server);
    pair.holder.signal(SIGTERM);
    CHECK_MESSAGE(pair.waiter.wait(30s) == Exit{0}, pair.waiter.err());
    wait_until([&] { return monitor.has_heard("yours "); }, "the message is seen");
    CHECK_MESSAGE(!monitor.has_heard(std::string(acquire_of(kind).sha1)), monitor.heard());
    CHECK(as_int(pair.server.command({"EXISTS", "rlock:holder:{k}"})) == 0);
  }
}

TEST_CASE("hand-over: a job that goes on is confirmed, and the next waiter is told")
{
  const auto go = make_temp_dir("hand-over") / "go";
  Pair pair({}, {}, {"sh", "-c", "until [ -e " + go.string() + " ]; do sleep 0.02; done"});
  const Monitor monitor(pair.server);
  Process next = pair.wait({}, {"true"}, "");
  pair.holder.signal(SIGTERM);
  wait_until([&] { return as_int(pair.server.command({"PTTL", "k"})) > 10'000; }, "the lease is confirmed");
  wait_until([&] { return monitor.has_heard("next 30000"); }, "the next one knows how long it lasts");
  for (const std::string& event : as_texts(pair.server.command({"LRANGE", "rlock:events:{k}", "0", "-1"}))) {
    CHECK_FALSE(has(event, "renewed_late"));
  }
  std::ofstream{go};
  CHECK_MESSAGE(pair.waiter.wait(30s) == Exit{0}, pair.waiter.err());
  CHECK_MESSAGE(next.wait(30s) == Exit{0}, next.err());
}

namespace {

// False: the waiter was so slow that it had to ask before it could begin, and its job did not begin.
bool begins_and_dies_unconfirmed()
{
  const auto pid_file = make_temp_dir("hand-over") / "pid";
  const RedisServer server;
  Relay relay(server);
  Process holder = start(server.url(), {}, {"sleep", "100"});
  wait_until([&] { return is_held(server); }, "the lock is held");
  const Monitor monitor(server);
  Process waiter = start(relay.url(), {}, {"sh", "-c", "echo $$ > " + pid_file.string() + "; exec sleep 100"});
  // After its subscription the waiter asks once more whether it is in the queue.
  wait_until([&] { return monitor.has_heard("ZSCORE"); }, "the waiter has subscribed and looked");
  relay.answer("-LOADING no request gets through\r\n");  // messages do
  holder.signal(SIGTERM);
  wait_until([&] { return text_of(pid_file).ends_with("\n") || !waiter.running(); }, "the job runs, or never will");
  if (!std::filesystem::exists(pid_file)) {
    CHECK_MESSAGE(waiter.wait(30s) == Exit{69}, waiter.err());
    return false;
  }
  const pid_t job = pid_from(pid_file);
  wait_until([&] { return as_int(server.command({"EXISTS", "k"})) == 0; }, "the short lease is over");
  CHECK_FALSE(is_alive(job));
  CHECK_MESSAGE(waiter.wait(30s) == Exit{121}, waiter.err());
  return true;
}

}  // namespace

TEST_CASE("hand-over: a job whose lease cannot be confirmed is dead before the short lease of the message ends")
{
  constexpr int tries = 10;
  int slow = 0;
  while (slow < tries && !begins_and_dies_unconfirmed()) {
    ++slow;
  }
  CHECK(slow < tries);
}

TEST_CASE("hand-over: after a step of the server's clock the server is asked first")
{
  Pair pair({.own_clock = true}, {}, {"true"});
  const Monitor monitor(pair.server);
  pair.server.step_clock(20s);  // the lease of the holder lasts for longer
  pair.holder.signal(SIGTERM);
  CHECK_MESSAGE(pair.waiter.wait(30s) == Exit{0}, pair.waiter.err());
  wait_until([&] { return monitor.has_heard("yours "); }, "the message is seen");
  CHECK(monitor.has_heard(std::string(acquire_of({}).sha1)));
}
