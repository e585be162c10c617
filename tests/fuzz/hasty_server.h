// SPDX-License-Identifier: Apache-2.0
// A server that sends at once to each connection what a fuzzer has chosen, before it hears anything.
#pragma once

#include "base/fd.h"
#include "fuzz/fuzzer.h"

#include <array>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace rlock::test {

// On a unix socket, for the life of the process. The script: what each connection gets, between bytes 0x1e.
class HastyServer {
 public:
  HastyServer() : m_listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0))
  {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    m_path = "/tmp/rlock-fuzz-" + std::to_string(::getpid());
    ::unlink(m_path.c_str());
    m_path.copy(address.sun_path, sizeof address.sun_path - 1);
    promise(::bind(m_listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
                ::listen(m_listener.get(), 64) == 0,
            "a listening socket");
    std::thread([this] { serve(); }).detach();
  }
  ~HastyServer() { ::unlink(m_path.c_str()); }
  HastyServer(const HastyServer&) = delete;
  HastyServer& operator=(const HastyServer&) = delete;

  void script(std::string_view bytes)
  {
    const std::lock_guard guard(m_mutex);
    m_script = bytes;
  }
  [[nodiscard]] const std::string& path() const { return m_path; }

 private:
  [[noreturn]] void serve()
  {
    for (;;) {
      const Fd peer(::accept4(m_listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
      const std::string bytes = next();
      ::send(peer.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      ::shutdown(peer.get(), SHUT_WR);
      std::array<char, 4096> heard{};
      while (::recv(peer.get(), heard.data(), heard.size(), 0) > 0) {
      }
    }
  }
  std::string next()
  {
    const std::lock_guard guard(m_mutex);
    Input input(m_script);
    std::string bytes(input.until('\x1e'));
    m_script = std::string(input.rest());
    return bytes;
  }

  Fd m_listener;
  std::string m_path;
  std::mutex m_mutex;
  std::string m_script;  // guarded by m_mutex
};

inline HastyServer& hasty_server()
{
  static auto* const the_server = new HastyServer;  // its thread never ends
  return *the_server;
}

// Promises that the call ends at its deadline. On a busy machine it may be late once. A call that waits longer than its deadline is
// late each time. `calls_in_time`: makes the call, and tells whether it was in time.
template <typename Call>
void promise_in_time(const Call& calls_in_time)
{
  constexpr int tries = 3;
  int late = 0;
  while (late < tries && !calls_in_time()) {
    ++late;
  }
  promise(late < tries, "a call ends at its deadline");
}

}  // namespace rlock::test
