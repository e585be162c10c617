// SPDX-License-Identifier: Apache-2.0
// Under an emulator the process of the job has a copy of the guardian's memory, and cannot tell in it that it has started.
#include "support/integration.h"
#include "support/job_runner.h"
#include "support/paths.h"
#include "support/skip.h"

using namespace rlock::test;

namespace {

class CopiedMemoryFixture {
 public:
  CopiedMemoryFixture() : dir(make_temp_dir("copied"))
  {
    skip_with_address_sanitizer("a program with the address sanitizer cannot be preloaded");
  }

  rlock::test::Process run(std::vector<std::string> job)
  {
    Words argv = joined({RLOCK_BINARY, "run", "-S", server.url(), "-k", "stock", "--"}, job);
    ProcessOptions options{.cwd = dir};
    options.env = {{"LD_PRELOAD", RLOCK_PRELOAD_COPIED_MEMORY}};
    return rlock::test::Process(std::move(argv), options);
  }

  const std::filesystem::path dir;
  const RedisServer server;
};

}  // namespace

TEST_CASE("copied memory: the job runs once, and its exit code is that of rlock")
{
  CopiedMemoryFixture fixture;
  rlock::test::Process run = fixture.run({"sh", "-c", "echo run; exit 7"});
  expect_end(run, exited(7), {out_is("run\n"), err_is("")}, 30s);
}

TEST_CASE("copied memory: a job that cannot be executed ends with 126")
{
  CopiedMemoryFixture fixture;
  std::ofstream(fixture.dir / "job") << "#!/nowhere\n";
  std::filesystem::permissions(fixture.dir / "job", std::filesystem::perms::owner_all);
  CHECK(fixture.run({"./job"}).wait(30s) == exited(126));
}

TEST_CASE("copied memory: the job dies with rlock")
{
  CopiedMemoryFixture fixture;
  rlock::test::Process run = fixture.run({"sh", "-c", "echo $$ >pid.new; mv pid.new pid; exec sleep 100"});
  rlock::test::wait_until([&] { return std::filesystem::exists(fixture.dir / "pid"); }, "the job runs");
  const pid_t job = std::stoi(text_of(fixture.dir / "pid"));
  run.signal(SIGKILL);
  rlock::test::wait_until([&] { return !is_alive(job); }, "the job is dead");
}
