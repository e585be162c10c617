// SPDX-License-Identifier: Apache-2.0
// Bytes on a socket, to connection, handshake, transport and subscription. Input: a digit for what the client does, one for how it
// logs in; and for each connection what the server sends at once, before it hears anything, between bytes 0x1e.
#include "base/fd.h"
#include "fuzz/fuzzer.h"
#include "fuzz/shown.h"
#include "server/transport.h"
#include "store/redis/redis_store.h"

#include <array>
#include <atomic>
#include <mutex>
#include <thread>

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace rlock::test {
namespace {

using namespace std::chrono_literals;

// A server on a unix socket, for the life of the process.
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

HastyServer& server()
{
  static auto* const the_server = new HastyServer;  // its thread never ends
  return *the_server;
}

Endpoint endpoint_for(std::size_t login)
{
  Endpoint endpoint;
  endpoint.kind = Endpoint::Kind::unix_socket;
  endpoint.path = server().path();
  endpoint.password = login == 1 || login == 2 ? "hunter2" : "";
  endpoint.db = login == 2 ? 1 : 0;
  endpoint.must_be_master = login == 3;
  return endpoint;
}

template <typename T>
void promise_result(const Result<T>& result)
{
  if (!result) {
    promise_error(result.error());
  }
}

// Whether the call ended at its deadline.
bool calls_in_time(std::string_view bytes)
{
  static const BootClock clock;
  Input input(bytes);
  const std::size_t act = input.choice(3);
  const Endpoint endpoint = endpoint_for(input.choice(4));
  server().script(input.rest());
  const CallLimits limit{.deadline = clock.now() + 1s, .stop = StopToken::never()};
  const LockRequest spec{.name = *LockName::parse("stock"), .kind = Plain{}, .ttl = 30s, .who = {}, .once = 1h};
  const Owner owner = Owner::of("8743c9c0:1");
  RedisStore store(std::make_unique<Direct>(endpoint, clock), clock);
  if (act == 0) {
    promise_result(store.inspect(spec.name, limit));
  } else if (act == 1) {
    const std::array<const LockRequest*, 2> specs{&spec, &spec};
    promise_result(store.release_each(specs, owner, limit).back());
  } else {
    auto listener = store.listen({&spec, 1}, owner, limit);
    promise_result(listener);
    if (listener) {
      promise_result((*listener)->hear_releases(0, limit));
      promise_result((*listener)->subscribe_to_grants(0, limit));
      promise_result((*listener)->heard(clock));
    }
  }
  return clock.now() < limit.deadline + 1s;
}

}  // namespace

// On a busy machine a call may be late once. A call that waits longer than its deadline is late each time.
void fuzz_wire(std::string_view bytes)
{
  constexpr int tries = 3;
  int late = 0;
  while (late < tries && !calls_in_time(bytes)) {
    ++late;
  }
  promise(late < tries, "a call ends at its deadline");
}

}  // namespace rlock::test
