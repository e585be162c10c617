// SPDX-License-Identifier: Apache-2.0
// rlock with a job that only KILL ends.
#pragma once

#include "support/guardian_of.h"
#include "support/integration.h"
#include "support/job_runner.h"

#include <string>
#include <utility>

namespace rlock::test {

// The job and its worker in the background ignore every signal that a user may send; DIR/main and DIR/worker have their numbers.
inline Words stubborn_job(const std::filesystem::path& dir)
{
  return {"sh", "-c",
          "trap '' TERM INT HUP QUIT; sh -c 'echo $$ >$0/worker; while :; do sleep 0.05; done' $0 & "
          "echo $$ >$0/main; wait",
          dir};
}

// The first words of a command line, and the lock that it takes first.
struct Invocation {
  Words words;
  std::string key;
};

// One process of rlock with that job, which is killed at the end. The server must outlive it.
class StubbornHolder {
 public:
  StubbornHolder(const RedisServer& server, const Invocation& invocation, const Words& options)
      : m_server(server), m_key(invocation.key), m_process(argv(invocation.words, options))
  {
  }
  ~StubbornHolder()
  {
    for (const pid_t process : {m_main, m_worker}) {
      if (process > 0 && is_alive(process)) {
        ::kill(process, SIGKILL);
      }
    }
  }
  StubbornHolder(const StubbornHolder&) = delete;
  StubbornHolder& operator=(const StubbornHolder&) = delete;

  void await_job()
  {
    m_main = pid_from(m_dir / "main");
    m_worker = pid_from(m_dir / "worker");
    REQUIRE(is_alive(m_worker));
    REQUIRE(look_for_guardian() > 0);
  }

  [[nodiscard]] pid_t runner() const { return m_process.pid(); }
  [[nodiscard]] pid_t guardian() const { return m_guardian; }
  pid_t look_for_guardian()
  {
    m_guardian = find_guardian(runner());
    return m_guardian;
  }
  [[nodiscard]] bool job_is_dead() const { return !is_alive(m_main) && !is_alive(m_worker); }
  [[nodiscard]] bool has_lock() const { return is_held(m_server, m_key); }
  [[nodiscard]] const std::string& key() const { return m_key; }
  Process& process() { return m_process; }

 private:
  [[nodiscard]] Words argv(Words words, const Words& options) const
  {
    const bool is_flock = words.front() == "flock";  // whose lock and job are its last words, without --
    const Words more = joined({"-S", m_server.url()}, options);
    words.insert(is_flock ? words.begin() + 1 : words.end(), more.begin(), more.end());
    const Words job = stubborn_job(m_dir);
    return rlock_argv(is_flock ? joined(words, job) : with_job(words, job));
  }

  std::filesystem::path m_dir = make_temp_dir("job");
  const RedisServer& m_server;
  std::string m_key;
  Process m_process;
  pid_t m_main = 0;
  pid_t m_worker = 0;
  pid_t m_guardian = 0;
};

}  // namespace rlock::test
