// SPDX-License-Identifier: Apache-2.0
#include "support/native_scenarios.h"

#include <csignal>

namespace rlock::test {

Words noting_around(const std::filesystem::path& go, const std::string& word)
{
  return shell(noting(word) + "; " + until_exists(go) + "; " + noting("end"));
}

void holder_stands(const NativeLine& line, const std::string& mark)
{
  const auto go = home_dir() / "go";
  Process holder = line.start_rlock_run({}, shell("echo fence $RLOCK_FENCE; " + until_exists(go) + "; exit 7"));
  wait_until([&] { return has(holder.out(), "fence "); }, "the job runs");
  REQUIRE(line.contenders().size() == 1);
  const std::string contender = line.contenders().front();
  CHECK_MESSAGE(has(contender, mark), contender);
  const std::string fence = line.fence_of(contender);
  CHECK(holder.out() == "fence " + fence + "\n");
  CHECK_MESSAGE(has(line.status(), "\"fence\":" + fence), line.status());
  create(go);
  expect_end(holder, exited(7), {err_is("")});
  CHECK(line.contenders().empty());
  CHECK(has(line.rlock({"history", "--json", "k"}).out, "\"fence\":" + fence));
  const Finished next = line.rlock_run({}, shell("echo $RLOCK_FENCE"));
  CHECK(std::stoll(next.out) > std::stoll(fence));
  const std::string events = line.rlock({"events", "--json", "-k", "k"}).out;
  expect_has(events, {"\"fence\":" + fence + ",", "\"fence\":" + first_line(next.out) + ","});
}

void native_waits(const NativeLine& line)
{
  const auto go = home_dir() / "go";
  Process holder = line.start_rlock_run({}, noting_around(go, "rlock"));
  await_order("rlock\n");
  Process native = line.start_native(shell(noting("native")));
  line.await_contenders(2);
  CHECK(order() == "rlock\n");
  create(go);
  CHECK_MESSAGE(holder.wait() == success, holder.err());
  CHECK_MESSAGE(native.wait(native_start) == success, native.err());
  CHECK(order() == "rlock\nend\nnative\n");
}

void rlock_waits(const NativeLine& line)
{
  const auto go = home_dir() / "go";
  Process native = line.start_native(noting_around(go, "native"));
  await_order("native\n");
  const std::string owner = line.first_owner();
  const std::size_t before = line.contenders().size();
  for (const Words& wait : {Words{"-n"}, Words{"-w", "0"}, Words{"-w", "700ms"}}) {
    expect_end(line.rlock_run(wait, {"true"}), 75, {err_has(owner)});
    CHECK(line.contenders().size() == before);
  }
  CHECK(has(line.rlock({"history", "k"}).out, "skipped"));
  Process waiter = line.start_rlock_run({}, shell(noting("rlock")));
  line.await_contenders(before + 1);
  wait_until([&] { return has(waiter.err(), owner); }, "it says for whom it waits");
  const std::string status = line.status();
  for (const std::string& field :
       {"\"format\":\"" + line.format() + "\"", "\"owner\":\"" + owner + "\"", std::string("\"place\":1")}) {
    CHECK_MESSAGE(has(status, field), status);
  }
  const std::string session = "ends with the session of its client";
  expect_end(
      line.rlock({"status", "k"}), 0,
      {out_has("(format " + line.format() + ")"), line.format() != "etcd" ? out_has(session) : out_lacks(session)});
  CHECK(order() == "native\n");
  create(go);
  CHECK_MESSAGE(native.wait(native_start) == success, native.err());
  CHECK_MESSAGE(waiter.wait(5s) == success, waiter.err());
  CHECK(order() == "native\nend\nrlock\n");
  CHECK(line.contenders().empty());
  CHECK(line.rlock({"status", "k"}).code == 1);
  CHECK(line.rlock_run({"-n"}, {"true"}).code == 0);
}

void rlock_shares(const NativeLine& line)
{
  const auto go = home_dir() / "go";
  Process native = line.start_native(shell(noting("native") + "; " + until_exists(go)));
  await_order("native\n");
  const Finished reader = line.rlock_run({"-n"}, {"true"});
  CHECK_MESSAGE(reader.code == 0, reader.err);
  CHECK(native.running());
  create(go);
  CHECK_MESSAGE(native.wait(native_start) == success, native.err());
  CHECK(line.contenders().empty());
}

void killed_native(const NativeLine& line)
{
  Process native = line.start_native(shell(noting("native") + "; exec sleep 60"), 2s);
  await_order("native\n");
  Process waiter = line.start_rlock_run({}, {"true"});
  line.await_contenders(2);
  native.signal(SIGKILL);
  CHECK_MESSAGE(waiter.wait(20s) == success, waiter.err());
}

void ended_runner(const NativeLine& line, void (*end)(const Process& runner))
{
  const auto alive = home_dir() / "alive";
  Process holder =
      line.start_rlock_run({"--ttl", "3s"}, {"flock", alive.string(), "sh", "-c", noting("rlock") + "; exec sleep 60"});
  await_order("rlock\n");
  Process native = line.start_native({"flock", "-n", alive.string(), "true"});
  line.await_contenders(2);
  end(holder);
  CHECK_MESSAGE(native.wait(native_start) == success, native.err());
  holder.signal(SIGCONT);
}
void killed_runner(const NativeLine& line)
{
  ended_runner(line, [](const Process& runner) { runner.signal(SIGKILL); });
}

void lost_contender(const NativeLine& line, const std::function<void(const std::string&)>& loses)
{
  Process holder = line.start_rlock_run({"--ttl", line.format() == "etcd" ? "15s" : "60s"},
                                        shell(noting("runs") + "; exec sleep 60"));
  await_order("runs\n");
  loses(line.contenders().front());
  expect_end(holder, exited(121), {err_has("was lost")});
  CHECK(line.rlock_run({"-w", "10s"}, {"true"}).code == 0);
}
void deleted_contender(const NativeLine& line)
{
  lost_contender(line, [&](const std::string& contender) { line.remove(contender); });
}

void nested_run(const NativeLine& line, const Words& nested, const Words& others)
{
  const auto words = [](const Words& options) {
    std::string all = rlock_argv({}).front() + " run -k k";
    for (const std::string& each : options) {
      all += " " + each;
    }
    return all;
  };
  const Finished run = line.rlock_run(
      {}, shell("echo $RLOCK_FENCE; " + words(nested) + " -- sh -c 'echo $RLOCK_FENCE'; env -u RLOCK_HELD " +
                words(others) + " -n -- true; echo $?"));
  CHECK_MESSAGE(run.code == 0, run.err);
  const auto said = lines_of(run.out);
  REQUIRE(said.size() == 3);
  CHECK(said[0] == said[1]);
  CHECK(said[2] == "75");
  CHECK(line.contenders().empty());
}

}  // namespace rlock::test
