// SPDX-License-Identifier: Apache-2.0
// Bytes on a socket, to the clients of ZooKeeper and of etcd: their frames, and everything that reads the answers. Input: a digit for
// the store, one for what the client does; and for each connection what the server sends at once, between bytes 0x1e.
#include "fuzz/fuzzer.h"
#include "fuzz/hasty_server.h"
#include "fuzz/shown.h"
#include "stores/etcd/etcd_backend.h"
#include "stores/zookeeper/zookeeper_backend.h"

namespace rlock::test {
namespace {

using namespace std::chrono_literals;
using namespace record;

Endpoint member()
{
  Endpoint endpoint;
  endpoint.kind = Endpoint::Kind::unix_socket;
  endpoint.path = hasty_server().path();
  return endpoint;
}

std::unique_ptr<Backend> backend(std::size_t store, const Clock& clock)
{
  auto rng = std::make_unique<SystemRng>();
  if (store == 0) {
    zookeeper::ConnectionSpec spec;
    spec.url = "zookeeper://h";
    spec.members = {member()};
    return zookeeper::open_backend(std::move(spec), clock, std::move(rng));
  }
  etcd::ConnectionSpec spec;
  spec.url = "etcd://h";
  spec.members = {member()};
  return etcd::open_backend(std::move(spec), clock, std::move(rng));
}

void write(Backend& store, const CallLimits& limit)
{
  const LogChange log{.written = {{.id = 1, .entry = "e"}}};
  const Face face{.holder = "somebody"};
  promise_result(store.write_if("stock", "", {.bytes = "r", .face = face, .log = log, .messages = {}}, limit));
}

void hold(Backend& store, const CallLimits& limit)
{
  const auto made = store.presences()->make(10s, Keeping::kept, limit);
  promise_result(made);
  if (!made) {
    return;
  }
  const auto proof = store.presences()->prove(made->id, limit);
  promise_result(proof);
  const auto* const lease = proof ? std::get_if<LeaseTerm>(&*proof) : nullptr;
  promise(lease == nullptr || lease->length > 0ms, "a lease that is proven lasts");
  promise_result(store.presences()->gone({&made->id, 1}, limit));
  promise_result(store.presences()->remove(made->id, limit));
}

void listen(Backend& store, const CallLimits& limit)
{
  const LockChannel channel{.lock = "stock", .channel = "stock:c"};
  const auto source = store.listen({&channel, 1}, limit);
  promise_result(source);
  if (source) {
    promise_result((*source)->next(limit));
  }
}

void act(Backend& store, std::size_t which, const CallLimits& limit)
{
  switch (which) {
    case 0: return promise_result(store.read("stock", limit));
    case 1: return write(store, limit);
    case 2: return hold(store, limit);
    case 3: return listen(store, limit);
    case 4: return promise_result(store.list("*", Backend::Which::held, limit));
    case 5: return promise_result(store.events("stock", limit));
    default: return promise_result(store.check_server(limit));
  }
}

// Whether the call ended at its deadline.
bool calls_in_time(std::string_view bytes)
{
  static const BootClock clock;
  Input input(bytes);
  const auto store = backend(input.choice(2), clock);
  const std::size_t which = input.choice(7);
  hasty_server().script(input.rest());
  const CallLimits limit{.deadline = clock.now() + 200ms, .stop = StopToken::never()};
  act(*store, which, limit);
  return clock.now() < limit.deadline + 1s;
}

}  // namespace

void fuzz_members(std::string_view bytes)
{
  promise_in_time([bytes] { return calls_in_time(bytes); });
}

}  // namespace rlock::test
