// SPDX-License-Identifier: Apache-2.0
#include "judge/stalls.h"

#include "base/fd.h"

#include <array>
#include <csignal>
#include <memory>
#include <stdexcept>
#include <utility>

#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace rlock::judge {
namespace {

constexpr Millis shortest{15};  // what counts as a stall
constexpr Millis step{5};
constexpr Millis between_pings{40};

// A process that answers each byte: what rlock promises is done by several processes, one after the other.
class Echo {
 public:
  Echo()
  {
    std::array<int, 2> ends{};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0 || (m_process = ::fork()) < 0) {
      throw std::runtime_error("no process to measure stalls with");
    }
    m_socket = Fd(ends[0]);
    const Fd other(ends[1]);
    if (m_process == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      m_socket = {};
      for (char byte = 0; ::read(other.get(), &byte, 1) == 1 && ::write(other.get(), &byte, 1) == 1;) {
      }
      ::_exit(0);
    }
  }
  ~Echo()
  {
    m_socket = {};
    ::waitpid(m_process, nullptr, 0);
  }
  Echo(const Echo&) = delete;
  Echo& operator=(const Echo&) = delete;

  void ask() const
  {
    char byte = 0;
    static_cast<void>(::write(m_socket.get(), &byte, 1) == 1 && ::read(m_socket.get(), &byte, 1) == 1);
  }

 private:
  Fd m_socket;
  pid_t m_process = -1;
};

}  // namespace

StallMeter::StallMeter(std::function<void()> act, Millis expected)
    : m_thread([this, act = std::move(act), expected] { measure(act, expected); })
{
}

void StallMeter::stop()
{
  m_stop = true;
  if (m_thread.joinable()) {
    m_thread.join();
  }
}

void StallMeter::measure(const std::function<void()>& act, Millis expected)
{
  const BootClock clock;
  for (Instant before = clock.now(); !m_stop;) {
    act();
    const Instant now = clock.now();
    if (now - before >= expected + shortest) {
      m_stalls.push_back({before + expected, now});
    }
    before = now;
  }
}

StallMeter machine_stalls()
{
  const auto wait = [echo = std::make_shared<Echo>()] {
    std::this_thread::sleep_for(step);
    echo->ask();
  };
  return {wait, step};
}

StallMeter server_stalls(Servers& servers)
{
  const auto ping = [&servers] {
    std::this_thread::sleep_for(between_pings);
    servers.ask_each([](const Ask& ask) { static_cast<void>(bool(ask({"PING"}))); });
  };
  return {ping, between_pings};
}

}  // namespace rlock::judge
