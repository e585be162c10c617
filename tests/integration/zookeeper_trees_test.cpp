// SPDX-License-Identifier: Apache-2.0
// A server of ZooKeeper whose tree lacks the presence of a holder that lives by the tree of the leader. ZooKeeper 3.8.0 had such servers
// after a leader change, when it let sessions go on that two of three servers had closed.
#include "engine/record_host.h"
#include "engine/script_store.h"
#include "stores/zookeeper/zookeeper_backend.h"
#include "support/forwarding_backend.h"
#include "support/limits.h"
#include "support/test.h"
#include "support/zookeeper_fixture.h"

using namespace rlock::test;

namespace {

const BootClock the_clock;

// To its client every presence that it asks for is gone.
class OtherTree final : public ForwardingPresences {
 public:
  using ForwardingPresences::ForwardingPresences;
  Result<std::vector<record::PresenceId>> gone(std::span<const record::PresenceId> ids, const CallLimits&) override
  {
    return std::vector(ids.begin(), ids.end());
  }
};

class OtherTreeBackend final : public ForwardingBackend {
 public:
  using ForwardingBackend::ForwardingBackend;
  record::Presences* presences() override { return &m_presences; }

 private:
  OtherTree m_presences{*ForwardingBackend::presences()};
};

struct Client {
  ScriptStore store;
  Owner owner;
  Result<Attempt> acquire()
  {
    return store.acquire({.name = *LockName::parse("k"),
                          .kind = Plain{},
                          .ttl = 30s,
                          .who = {.lease = 30s, .automatic = true},
                          .once = {}},
                         owner, {}, within(2s));
  }
};

}  // namespace

TEST_CASE("zookeeper trees: a hold is ended only where the leader knows no presence of its owner either")
{
  const ZookeeperServer nodes;
  const auto host = [&](bool has_other_tree) {
    auto backend = zookeeper::open_backend(zookeeper::connection_spec(*zookeeper::parse_zookeeper_url(nodes.url())),
                                           the_clock, std::make_unique<SystemRng>());
    if (has_other_tree) {
      backend = std::make_unique<OtherTreeBackend>(std::move(backend));
    }
    return std::make_unique<record::RecordHost>(std::move(backend), the_clock, std::make_unique<SystemRng>());
  };
  Client holder{{host(false), the_clock}, Owner::of("11111111-2222-3333-4444-555555555555:1")};
  Client misled{{host(true), the_clock}, Owner::of("11111111-2222-3333-4444-666666666666:1")};
  const auto first = holder.acquire();
  REQUIRE_MESSAGE(first, first.error().text);
  REQUIRE(std::holds_alternative<Granted>(*first));

  const auto second = misled.acquire();
  CHECK_FALSE((second && std::holds_alternative<Granted>(*second)));

  const auto again = holder.acquire();  // it holds the lock still
  REQUIRE_MESSAGE(again, again.error().text);
  CHECK(std::holds_alternative<Granted>(*again));
}
