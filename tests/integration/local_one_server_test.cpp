// SPDX-License-Identifier: Apache-2.0
// `local:` is one server for each user and root file system of a host, wherever its directory is, and is started again after a crash.
#include "support/integration.h"
#include "support/paths.h"
#include "support/runtime_dir.h"
#include "support/skip.h"

#include <array>
#include <cstddef>
#include <cstdio>

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

using namespace rlock::test;

namespace {

std::vector<std::string> on_local(std::vector<std::string> words)
{
  words.insert(words.begin() + 1, {"-S", "local:"});
  return words;
}

// Runs a job until the file `end` exists.
Process hold(const RuntimeDir& dir, const std::filesystem::path& end, std::vector<std::string> options = {"-k", "k"})
{
  Words words = joined({"run", "--ttl", "3s"}, options);
  const std::string begun = end.string() + ".begun";
  const std::string job = "echo >> " + begun + "; until [ -e " + end.string() + " ]; do sleep 0.02; done";
  words.insert(words.end(), {"--", "sh", "-c", job});
  Process holder = start_rlock(on_local(words), dir.options());
  wait_until([&] { return std::filesystem::exists(begun); }, "the job has begun", 30s);
  return holder;
}

void touch(const std::filesystem::path& file) { ::close(::open(file.c_str(), O_CREAT | O_WRONLY, 0600)); }

Finished try_once(const RuntimeDir& dir)
{
  return run_rlock(on_local({"run", "-k", "k", "-n", "--", "true"}), dir.options());
}

// Takes the abstract socket that the server of this test case would take.
int squat()
{
  struct stat root {};
  REQUIRE(::stat("/", &root) == 0);
  std::array<char, 64> of_root{};
  std::snprintf(of_root.data(), of_root.size(), "-%jx:%ju-", static_cast<std::uintmax_t>(root.st_dev),
                static_cast<std::uintmax_t>(root.st_ino));
  const std::string name =
      "rlock-local-" + std::to_string(::geteuid()) + of_root.data() + clean_environment().at("RLOCK_LOCAL_NAME");
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  name.copy(address.sun_path + 1, sizeof address.sun_path - 1);
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  REQUIRE(::bind(fd, reinterpret_cast<const sockaddr*>(&address), length) == 0);
  return fd;
}

}  // namespace

LOCAL_CASE("local: two runtime directories share one server")
{
  const RuntimeDir other;
  const auto end = make_temp_dir("end") / "end";
  Process holder = hold(dir, end);
  CHECK(try_once(other).code == 75);
  CHECK(dir.servers().size() == 1);
  CHECK(other.servers().empty());
  touch(end);
  CHECK(holder.wait(30s) == success);
  CHECK(try_once(other).code == 0);
}

TEST_CASE("local: callers with different runtime directories that come at the same moment start one server")
{
  const RuntimeDir dirs[4];
  std::vector<Process> crowd;
  for (int i = 0; i < 12; ++i) {
    crowd.push_back(start_rlock(on_local({"run", "-k", "k" + std::to_string(i), "--", "true"}), dirs[i % 4].options()));
  }
  expect_ends(crowd, 30s);
  std::size_t servers = 0;
  for (const RuntimeDir& dir : dirs) {
    servers += dir.servers().size();
  }
  CHECK(servers == 1);
}

LOCAL_CASE("local: a server whose directory was removed under a job is named, and no second one is started")
{
  const auto end = make_temp_dir("end") / "end";
  Process holder = hold(dir, end);
  const auto servers = dir.servers();
  REQUIRE(servers.size() == 1);
  std::filesystem::remove_all(dir.home());

  for (const bool is_made_again : {false, true}) {
    CAPTURE(is_made_again);
    if (is_made_again) {
      std::filesystem::create_directory(dir.home());
      std::filesystem::permissions(dir.home(), std::filesystem::perms::owner_all);
    }
    expect_end(try_once(dir), 69, {err_has("process " + std::to_string(*servers.begin()) + " ")});
    CHECK(dir.servers() == servers);
  }
  touch(end);
  CHECK(holder.wait(30s) == success);
  dir.kill_servers();
  CHECK(try_once(dir).code == 0);
}

LOCAL_CASE("local: the name taken by a process that is no server is named with 69")
{
  const int fd = squat();
  expect_end(run_rlock(on_local({"run", "-k", "k", "--server-timeout", "500ms", "--", "true"}), dir.options()), 69,
             {err_has("process " + std::to_string(::getpid()) + " ")});
  ::close(fd);
}

// A root file system with the programs of this one and a /tmp of its own, as a container has it, with a /proc of its own, but
// with the network of this one.
TEST_CASE("local: a container with the network of its host has a server of its own beside that of the host")
{
  if (::geteuid() != 0 ||
      Process({"unshare", "-m", "-p", "-f", "mount", "-t", "tmpfs", "none", "/mnt"}).wait() != Exit{0}) {
    skip("root and mount namespaces");
  }
  const RuntimeDir dir;
  const auto end = make_temp_dir("end") / "end";
  Process holder = hold(dir, end);
  const auto root = make_temp_dir("root");
  const std::string program = std::filesystem::path(RLOCK_BINARY).parent_path().string();
  const std::string inside =
      "rlock run -S local: -k k -n -- true && rlock run -S local: -k other -n -- echo ran inside";
  const std::string container =
      "set -e; root=" + root.string() +
      "; mount -t tmpfs none $root; cd /; "
      "for each in bin sbin lib lib64 usr etc dev; do "
      "  if [ -L $each ]; then cp -P $each $root/$each; "
      "  elif [ -d $each ]; then mkdir $root/$each; mount --rbind $each $root/$each; fi; done; "
      "mkdir -p $root/tmp $root/proc $root" +
      program +
      "; mount -t proc proc $root/proc; "
      "mount --bind " +
      program + " $root" + program +
      "; "
      "chroot $root sh -c '" +
      inside + "'";
  ProcessOptions options = dir.options();
  options.env["XDG_RUNTIME_DIR"] = "/tmp";
  options.env["PATH"] = program + ":/usr/sbin:/usr/bin:/sbin:/bin";
  Process other({"unshare", "-m", "-p", "-f", "sh", "-c", container}, options);
  expect_end(other, Exit{0}, {out_is("ran inside\n")}, 60s);
  CHECK(dir.servers().size() == 1);
  CHECK(try_once(dir).code == 75);
  touch(end);
  CHECK(holder.wait(30s) == success);
}

LOCAL_CASE("local: a name for a further server has to be one")
{
  ProcessOptions options = dir.options();
  options.env["RLOCK_LOCAL_NAME"] = "../x";
  expect_end(run_rlock(on_local({"run", "-k", "k", "--", "true"}), options), 78, {err_has("RLOCK_LOCAL_NAME")});
}

LOCAL_CASE("local: running jobs of every kind of lock start the killed server again and keep their locks")
{
  const auto end = make_temp_dir("end");
  const std::vector<std::vector<std::string>> kinds = {
      {"-k", "plain"}, {"-k", "rw", "-s"}, {"-k", "permits", "--permits", "1"}, {"-k", "string", "--format", "string"}};
  std::vector<Process> holders;
  for (const auto& kind : kinds) {
    holders.push_back(hold(dir, end / kind[1], kind));
  }
  const auto before = dir.servers();
  dir.kill_servers();
  wait_until([&] { return !dir.servers().empty(); }, "a watchdog has started the server again", 30s);
  const auto after = dir.servers();
  CHECK(after.size() == 1);
  CHECK(after != before);

  std::this_thread::sleep_for(3s);  // the ttl: only a renewal on the new server keeps the locks for longer
  for (auto kind : kinds) {
    CAPTURE(kind[1]);
    std::replace(kind.begin(), kind.end(), std::string("-s"), std::string("-x"));
    kind.insert(kind.begin(), "run");
    kind.insert(kind.end(), {"-n", "--", "true"});
    CHECK(run_rlock(on_local(kind), dir.options()).code == 75);
  }
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    touch(end / kinds[i][1]);
    CHECK(holders[i].wait(30s) == success);
    CHECK_FALSE(has(holders[i].err(), "lost"));
  }
  CHECK(dir.servers() == after);  // a server that a job's rlock started outlives the job
}

LOCAL_CASE("local: a waiter starts the killed server again and waits on")
{
  REQUIRE(run_rlock(on_local({"acquire", "-k", "k", "--lease", "6s"}), dir.options()).code == 0);
  Process waiter = start_rlock(on_local({"run", "-k", "k", "-w", "30s", "--", "echo", "ran"}), dir.options());
  const auto waits = [&] { return has(run_rlock(on_local({"status", "-k", "k"}), dir.options()).out, "waiting"); };
  wait_until(waits, "the waiter is queued", 30s);
  dir.kill_servers();
  expect_end(waiter, success, {out_is("ran\n")}, 30s);
}

LOCAL_CASE("local: a keeper starts the killed server again and keeps the lock")
{
  Process kept({"sleep", "60"});
  REQUIRE(run_rlock(on_local({"acquire", "-k", "k", "--ttl", "3s", "--pid", std::to_string(kept.pid())}), dir.options())
              .code == 0);
  dir.kill_servers();
  wait_until([&] { return !dir.servers().empty(); }, "the keeper has started the server again", 30s);
  std::this_thread::sleep_for(3s);  // the ttl
  CHECK(try_once(dir).code == 75);
  CHECK(kept.running());
  kept.signal(SIGKILL);
  kept.wait();
  wait_until([&] { return try_once(dir).code == 0; }, "the keeper has released the lock", 30s);
}
