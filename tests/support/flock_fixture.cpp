// SPDX-License-Identifier: Apache-2.0
#include "support/flock_fixture.h"

#include "process/launch.h"
#include "support/paths.h"
#include "support/temp_dir.h"
#include "support/wait_until.h"

#include <doctest/doctest.h>

#include <fstream>
#include <utility>

namespace rlock::test {
namespace {

namespace fs = std::filesystem;

Finished finish(Process process)
{
  const Exit exit = process.wait();
  return {.code = exit.code, .signal = exit.signal, .out = process.out(), .err = process.err()};
}

}  // namespace

FlockFixture::FlockFixture(std::string program, std::string lock, fs::path dir, ProcessOptions options)
    : m_program(std::move(program)), m_lock(std::move(lock)), m_dir(std::move(dir)), m_options(std::move(options))
{
}

ProcessOptions FlockFixture::with(ProcessOptions more) const
{
  more.cwd = m_dir;
  more.env.insert(m_options.env.begin(), m_options.env.end());
  return more;
}

Process FlockFixture::start(std::vector<std::string> options, const std::vector<std::string>& command,
                            ProcessOptions more) const
{
  options.insert(options.begin(), m_program);
  options.push_back(m_lock);
  options.insert(options.end(), command.begin(), command.end());
  return Process(std::move(options), with(std::move(more)));
}

Finished FlockFixture::run(std::vector<std::string> options, const std::vector<std::string>& command,
                           const ProcessOptions& more) const
{
  return finish(start(std::move(options), command, more));
}

Finished FlockFixture::run_words(std::vector<std::string> words) const
{
  words.insert(words.begin(), m_program);
  return finish(Process(std::move(words), with({})));
}

Process FlockFixture::script(const std::string& text) const
{
  ProcessOptions options = with({});
  options.env["PROGRAM"] = m_program;
  options.env["LOCK"] = m_lock;
  return Process({"bash", "-c", text}, options);
}

Process FlockFixture::hold(std::vector<std::string> options) const
{
  fs::remove(m_dir / "go");
  fs::remove(m_dir / "held");
  Process holder =
      start(std::move(options), {"sh", "-c", "echo start; : >held; until [ -e go ]; do sleep 0.02; done; echo end"});
  wait_until([&] { return fs::exists(m_dir / "held"); }, "the holder has the lock");
  return holder;
}

void FlockFixture::release_all() const { std::ofstream(m_dir / "go"); }

void FlockFixture::end(Process& holder) const
{
  release_all();
  CHECK(holder.wait() == success);
}

bool FlockFixture::is_free() const { return run({"-n"}, {"true"}).code == 0; }

FlockFixture rflock_fixture(const RedisServer& server)
{
  ProcessOptions options;
  options.env["RLOCK_SERVER"] = server.url();
  return {fs::path(RLOCK_BINARY).parent_path() / "rflock", "k", make_temp_dir("rflock"), options};
}

void for_flock_and_rflock(const std::function<void(const FlockFixture&)>& body)
{
  const auto run = [&](const FlockFixture& flock) {
    CAPTURE(flock.program());
    body(flock);
  };
  if (const auto flock = find_command("flock", clean_environment()["PATH"])) {
    const fs::path dir = make_temp_dir("flock");
    run({*flock, dir / "lock", dir, {}});
  }
  const RedisServer server;
  run(rflock_fixture(server));
}

}  // namespace rlock::test
