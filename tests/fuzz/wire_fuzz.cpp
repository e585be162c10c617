// SPDX-License-Identifier: Apache-2.0
// Bytes on a socket, to connection, handshake, transport and subscription. Input: a digit for what the client does, one for how it
// logs in; and for each connection what the server sends at once, before it hears anything, between bytes 0x1e.
#include "fuzz/fuzzer.h"
#include "fuzz/hasty_server.h"
#include "fuzz/shown.h"
#include "redis/redis_store.h"
#include "redis/transport.h"

#include <array>

namespace rlock::test {
namespace {

using namespace std::chrono_literals;

Endpoint endpoint_for(std::size_t login)
{
  Endpoint endpoint;
  endpoint.kind = Endpoint::Kind::unix_socket;
  endpoint.path = hasty_server().path();
  endpoint.password = login == 1 || login == 2 ? "hunter2" : "";
  endpoint.db = login == 2 ? 1 : 0;
  endpoint.must_be_master = login == 3;
  return endpoint;
}

// Whether the call ended at its deadline.
bool calls_in_time(std::string_view bytes)
{
  static const BootClock clock;
  Input input(bytes);
  const std::size_t act = input.choice(3);
  const Endpoint endpoint = endpoint_for(input.choice(4));
  hasty_server().script(input.rest());
  const CallLimits limit{.deadline = clock.now() + 1s, .stop = StopToken::never()};
  const LockSpec spec{.name = *LockName::parse("stock"), .kind = Plain{}, .ttl = 30s, .who = {}, .once = 1h};
  const Owner owner = Owner::of("8743c9c0:1");
  RedisStore store(std::make_unique<Direct>(endpoint, clock), clock);
  if (act == 0) {
    promise_result(store.inspect(spec.name, limit));
  } else if (act == 1) {
    const std::array<const LockSpec*, 2> specs{&spec, &spec};
    promise_result(store.release_each(specs, owner, limit).back());
  } else {
    auto listener = store.listen({&spec, 1}, owner, limit);
    promise_result(listener);
    if (listener) {
      promise_result((*listener)->hear_releases(0, limit));
      promise_result((*listener)->hear_as_holder({&owner, 1}, limit));
      promise_result((*listener)->heard(clock));
    }
  }
  return clock.now() < limit.deadline + 1s;
}

}  // namespace

void fuzz_wire(std::string_view bytes)
{
  promise_in_time([bytes] { return calls_in_time(bytes); });
}

}  // namespace rlock::test
