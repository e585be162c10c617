// SPDX-License-Identifier: Apache-2.0
// What the holder of a lost lock says of the reason, and that its job was stopped.
#include "support/integration.h"
#include "support/paths.h"

using namespace rlock::test;

namespace {

// A job that deletes its lock.
std::vector<std::string> deleting(const RedisServer& server)
{
  return {"sh", "-c", client_program() + " -s " + server.socket_path().string() + " DEL k >&2; sleep 30"};
}

class Holder {
 public:
  explicit Holder(std::vector<std::string> job = {"sleep", "30"}) : m_run(words(std::move(job)))
  {
    wait_until([&] { return as_int(server.command({"EXISTS", "k"})) == 1; }, "the lock is held");
  }
  std::string last_words()
  {
    CHECK(m_run.wait(30s) == exited(121));
    return m_run.err();
  }

  RedisServer server;

 private:
  std::vector<std::string> words(std::vector<std::string> job) const
  {
    return rlock_argv(with_job({"run", "-S", server.url(), "-k", "k", "--ttl", "3s"}, std::move(job)));
  }

  Process m_run;
};

}  // namespace

TEST_CASE("loss words: a key that was deleted, while the server still has the event log")
{
  Holder holder;
  holder.server.command({"DEL", "k"});
  const std::string said = holder.last_words();
  CHECK_MESSAGE(has(said, "the lock k was lost: expired or deleted; noticed at "), said);
  CHECK_MESSAGE(said.ends_with("; the job was stopped\n"), said);
}

TEST_CASE("loss words: a server that has lost all data")
{
  Holder holder;
  SUBCASE("flushed") { holder.server.command({"FLUSHALL"}); }
  SUBCASE("restarted without it")
  {
    holder.server.kill_hard();
    holder.server.restart();
  }
  CHECK(has(holder.last_words(),
            "the lock k was lost: the server no longer has its data (it was restarted without it, or flushed, or a "
            "fail-over lost it); noticed at "));
}

SERVER_CASE("loss words: a permit that was deleted, after so many events of others that its grant is forgotten")
{
  const std::vector<std::string> permit{"run", "-S", server.url(), "-k", "k", "--ttl", "3s", "--permits", "2"};
  Process holder(rlock_argv(with_job(permit, {"sleep", "60"})));
  wait_until([&] { return as_int(server.command({"ZCARD", "{k}:timeout"})) == 1; }, "the permit is held");
  std::vector<std::string> events{"RPUSH", "rlock:events:{k}"};
  for (int i = 0; i < 200; ++i) {
    events.push_back("1795262390000123");
  }
  server.command(events);
  server.command({"LTRIM", "rlock:events:{k}", "-128", "-1"});
  server.command({"DEL", "{k}:timeout"});
  expect_end(holder, exited(121), {err_has("the lock k was lost: expired or deleted; noticed at ")}, 30s);
  CHECK_MESSAGE(holder.err().ends_with("; the job was stopped\n"), holder.err());
}

TEST_CASE("loss words: a lock that its own job released")
{
  const auto go = make_temp_dir("job") / "go";
  Holder holder({"sh", "-c",
                 "until [ -e " + go.string() + " ]; do sleep 0.02; done; " + RLOCK_BINARY + " release -k k; sleep 30"});
  std::ofstream(go) << "";
  CHECK(has(holder.last_words(), "the lock k was lost: it was released with its token; noticed at "));
}

TEST_CASE("loss words: who asks for the lock is said before the job is stopped")
{
  Holder holder({"sh", "-c", "trap 'echo stopping >&2; exit 1' TERM; while :; do sleep 0.05; done"});
  const Finished forced =
      run_rlock({"force-unlock", "-S", holder.server.url(), "-k", "k", "--yes", "--reason", "it hangs"});
  CHECK(forced.code == 0);
  CHECK_MESSAGE(forced.out.ends_with("; its job is dead\n"), forced.out);
  const std::string said = holder.last_words();
  const std::size_t asked = said.find("force-unlock of the lock k by ");
  REQUIRE_MESSAGE(asked != std::string::npos, said);
  const std::size_t stopping = said.find("): it hangs; stopping the job\n", asked);
  REQUIRE_MESSAGE(stopping != std::string::npos, said);
  CHECK(said.find("stopping\n", stopping) != std::string::npos);
  CHECK_MESSAGE(has(said, "it hangs; noticed at "), said);
  CHECK_MESSAGE(said.ends_with("; the job was stopped\n"), said);
}

SERVER_CASE("loss words: --utc, in another zone")
{
  ProcessOptions ahead;
  ahead.env["TZ"] = "XYZ-1:30";
  for (const bool in_utc : {false, true}) {
    CAPTURE(in_utc);
    std::vector<std::string> words{"run", "-S", server.url(), "-k", "k"};
    words.insert(words.end(), in_utc ? 1 : 0, "--utc");
    Process run(rlock_argv(with_job(std::move(words), deleting(server))), ahead);
    CHECK(run.wait(30s) == exited(121));
    CHECK_MESSAGE(has(run.err(), "+01:30; the job was stopped\n") != in_utc, run.err());
  }
}
