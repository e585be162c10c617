// SPDX-License-Identifier: Apache-2.0
#include "fault/program.h"

#include "base/exit_code.h"
#include "support/job_runner.h"
#include "support/temp_dir.h"
#include "support/text_file.h"

#include <algorithm>
#include <csignal>
#include <sstream>

namespace rlock::test {
namespace {

constexpr Millis hang{30'000};  // rlock has no reason to take so long
constexpr Millis look_every{20};
constexpr Millis most_wait{3000};      // of rlock for its lock
constexpr int first_high_number = 20;  // descriptors of rlock that the job inherits on purpose have such numbers

constexpr const char* job = R"(
ls /proc/$$/fd
echo begin $$ >> "$1/log"
sleep "$2"
echo end >> "$1/log")";

std::string seconds(Millis time) { return std::to_string(time.count()) + "ms"; }

std::string decimal(Millis time)
{
  std::ostringstream text;
  text << static_cast<double>(time.count()) / 1000;
  return text.str();
}

bool is(const Exit& exit, ExitCode code) { return exit.code == static_cast<int>(code); }

}  // namespace

Program::Program(const Servers& servers, ProgramOptions options)
    : m_options(std::move(options)),
      m_dir(make_temp_dir("program")),
      m_rival(servers, m_keys, Plain{}, m_options.times.ttl, m_claims)
{
}

void Program::run()
{
  const Instant start = m_clock.now();
  Process rlock = start_rlock({"run",
                               "-S",
                               m_options.url,
                               "-k",
                               m_keys.front(),
                               "--ttl",
                               seconds(m_options.times.ttl),
                               "--server-timeout",
                               seconds(m_options.times.server_timeout),
                               "--kill-after",
                               "100ms",
                               "-w",
                               seconds(most_wait),
                               "--",
                               "/bin/sh",
                               "-c",
                               job,
                               "job",
                               m_dir.string(),
                               decimal(m_options.job_time)},
                              {.env = m_options.env});
  watch(rlock);
  m_took = std::chrono::ceil<Millis>(m_clock.now() - start);
  m_err = rlock.err();
  m_out = rlock.out();
  judge_job();
  judge_exit();
  judge_descriptors();
}

void Program::watch(Process& rlock)
{
  const Instant give_up = m_clock.now() + hang;
  while (rlock.running() && m_clock.now() < give_up) {
    read_log();
    if (m_job > 0 &&
        m_rival.try_once([this] { expect(!is_alive(m_job), "the job runs while a rival has the lock"); })) {
      expect(!is_alive(m_job) || !rlock.running(), "a rival got the lock of a living job");
    }
    m_clock.sleep_until(m_clock.now() + look_every, StopToken::never());
  }
  expect(!rlock.running(), "rlock hangs");
  rlock.signal(SIGKILL);
  m_exit = rlock.wait();
  read_log();
}

void Program::read_log()
{
  std::istringstream log(text_of(m_dir / "log"));
  m_begun = 0;
  for (std::string word; log >> word;) {
    if (word == "begin") {
      ++m_begun;
      log >> m_job;
    }
    m_ended = m_ended || word == "end";
  }
}

void Program::judge_job()
{
  expect(m_begun <= 1, "the job ran " + std::to_string(m_begun) + " times");
  expect(m_job == 0 || !is_alive(m_job), "the job is alive after the end of rlock");
}

// Codes of contract §6.
void Program::judge_exit()
{
  const bool told = m_err.find("rlock: ") == 0;
  if (is(m_exit, ExitCode::ok)) {
    return expect(m_ended, "success without a job that ended");
  }
  expect(told, "nothing was said");
  if (is(m_exit, ExitCode::unavailable) || is(m_exit, ExitCode::busy) || is(m_exit, ExitCode::not_executable)) {
    return expect(m_begun == 0, "the job ran, and rlock says that it never did");
  }
  if (is(m_exit, ExitCode::lost)) {
    return expect(m_begun > 0 || m_took > m_options.times.ttl / 2, "a lock counts as lost that nothing has taken away");
  }
  expect(is(m_exit, ExitCode::os), "an exit code that nothing explains");
}

void Program::judge_descriptors()
{
  std::istringstream numbers(m_out);
  for (int fd = 0; numbers >> fd;) {
    expect(fd <= STDERR_FILENO || fd >= first_high_number, "the job has descriptor " + std::to_string(fd));
  }
}

void Program::expect_free_lock()
{
  m_rival.look_at_keys();
  expect(m_rival.gets_all(), "the lock does not become free");
  m_rival.look_at_keys();
  for (const std::string& key : m_rival.bad_keys()) {
    expect(false, key);
  }
}

void Program::expect(bool holds, const std::string& what)
{
  if (!holds) {
    m_wrong.push_back(what);
  }
}

std::vector<std::string> Program::wrong() const
{
  std::vector<std::string> all;
  for (const std::string& what : m_wrong) {
    all.push_back(what + "; " + summary());
  }
  return all;
}

std::string Program::summary() const
{
  return show(m_exit) + " after " + seconds(m_took) + ", job begun " + std::to_string(m_begun) + " times, " +
         (m_ended ? "ended" : "not ended") + ", stderr: " + m_err;
}

}  // namespace rlock::test
