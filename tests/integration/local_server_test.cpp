// SPDX-License-Identifier: Apache-2.0
// `local:` is one private server for each user, started by the first client.
#include "support/integration.h"
#include "support/runtime_dir.h"

#include <sys/stat.h>

using namespace rlock::test;

LOCAL_CASE("local: starts one, private and detached, and the next finds it")
{
  const Finished first = succeeded(run_rlock({"run", "-S", "local:", "-k", "k", "--", "echo", "ran"}, dir.options()));
  CHECK(first.out == "ran\n");
  CHECK(first.err == "");
  struct stat about {};
  REQUIRE(::stat(dir.home().c_str(), &about) == 0);
  CHECK((about.st_mode & 0777) == 0700);

  const auto servers = dir.servers();
  CHECK(servers.size() == 1);
  CHECK(run_rlock({"run", "-S", "local:", "-k", "k", "--", "true"}, dir.options()).code == 0);
  CHECK(dir.servers() == servers);
}

LOCAL_CASE("local: a command that is not found starts no server, and is in the history of one that runs")
{
  const Words missing{"run", "-S", "local:", "-k", "k", "--", "/nonexistent/job"};
  CHECK(run_rlock(missing, dir.options()).code == 127);
  CHECK(dir.servers().empty());
  CHECK_FALSE(std::filesystem::exists(dir.home()));

  REQUIRE(run_rlock({"run", "-S", "local:", "-k", "k", "--", "true"}, dir.options()).code == 0);
  CHECK(run_rlock(missing, dir.options()).code == 127);
  const Finished history = run_rlock({"history", "-S", "local:", "k"}, dir.options());
  CHECK(has(history.out, "  failed     127  "));
}

LOCAL_CASE("local: twelve that come at the same moment start one and exclude each other")
{
  const std::filesystem::path count = make_temp_dir("count") / "n";
  std::ofstream(count) << "0\n";
  std::vector<Process> crowd;
  for (int i = 0; i < 12; ++i) {
    crowd.push_back(start_rlock({"run", "-S", "local:", "-k", "k", "--", "sh", "-c",
                                 "n=$(cat " + count.string() + "); sleep 0.01; echo $((n+1)) > " + count.string()},
                                dir.options()));
  }
  expect_ends(crowd, 30s);
  int sum = 0;
  std::ifstream(count) >> sum;
  CHECK(sum == 12);
  CHECK(dir.servers().size() == 1);
}

LOCAL_CASE("local: a crash of the server loses no lock")
{
  Process holder = start_rlock({"run", "-S", "local:", "-k", "k", "--ttl", "10s", "--", "sleep", "30"}, dir.options());
  const auto is_taken = [&] { return run_rlock({"status", "-S", "local:", "-k", "k"}, dir.options()).code == 0; };
  wait_until(is_taken, "the lock is taken");
  dir.kill_servers();
  const Finished busy = run_rlock({"run", "-S", "local:", "-k", "k", "-n", "--", "true"}, dir.options());
  CHECK(busy.code == 75);
  holder.signal(SIGTERM);
  CHECK(holder.wait() == died_of(SIGTERM));
}

LOCAL_CASE("local: a directory that other users can enter is refused, and a symbolic link")
{
  std::filesystem::create_directory(dir.home());
  std::filesystem::permissions(dir.home(), std::filesystem::perms::all);
  expect_end(run_rlock({"run", "-S", "local:", "-k", "k", "--", "true"}, dir.options()), 78,
             {err_has(dir.home().string())});

  std::filesystem::remove(dir.home());
  std::filesystem::create_directory_symlink("/tmp", dir.home());
  CHECK(run_rlock({"run", "-S", "local:", "-k", "k", "--", "true"}, dir.options()).code == 78);
  std::filesystem::remove(dir.home());
}

LOCAL_CASE("local: says what to install where there is no server program")
{
  ProcessOptions options = dir.options();
  options.env["PATH"] = make_temp_dir("empty").string();
  const Finished end = run_rlock({"run", "-S", "local:", "-k", "k", "--", "/bin/true"}, options);
  CHECK((end.code == 69 || end.code == 78));
  expect_has(end.err, {"redis-server", "install"});
}

// As the package redis-tools of Debian has it.
LOCAL_CASE("local: starts the server that is installed as redis-check-rdb")
{
  const auto programs = make_temp_dir("programs");
  const std::filesystem::path installed = server_program();
  std::filesystem::create_symlink(std::filesystem::canonical(installed), programs / "redis-check-rdb");
  ProcessOptions options = dir.options();
  options.env["PATH"] = programs.string();
  expect_end(run_rlock({"run", "-S", "local:", "-k", "k", "--", "/bin/echo", "ran"}, options), 0, {out_is("ran\n")});
  CHECK(dir.servers().size() == 1);
}

TEST_CASE("local: is never chosen silently")
{
  const Finished end = run_rlock({"run", "-S", "redis://127.0.0.1:1", "-k", "k", "--", "true"});
  CHECK(end.code == 69);
  CHECK_FALSE(has(end.err, "local:"));  // which a caller that names its server does not want
}
