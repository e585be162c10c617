// SPDX-License-Identifier: Apache-2.0
// rediss+cluster:// a cluster that speaks only TLS, with clients and among its nodes.
#include "support/certificates.h"
#include "support/integration.h"
#include "support/redis_cluster.h"
#include "support/refusal.h"

using namespace rlock::test;

namespace {

struct Secured {
  Authority authority;
  RedisCluster cluster{{.tls = &authority}};

  // rlock VERB -S … -k k REST
  [[nodiscard]] Words words(const std::string& verb, const Words& rest) const
  {
    return joined({verb, "-S", cluster.url(), "--cacert", authority.file(), "-k", "k"}, rest);
  }
  [[nodiscard]] Process start(const Words& rest) const { return start_rlock(words("run", rest)); }
};

std::int64_t ttl(const RedisServer& node) { return as_int(node.command({"PTTL", "k"})); }

std::size_t listening_on(const RedisServer& node)
{
  return as_texts(node.command({"PUBSUB", "SHARDCHANNELS", "rlock:owner:*"})).size();
}

bool has_sent_somebody_on(const RedisServer& node)
{
  return has(as_text(node.command({"INFO", "errorstats"})), "errorstat_MOVED:");
}

}  // namespace

TEST_CASE("cluster: over TLS a lock is taken, renewed, waited for and handed over, also where its slot moves meanwhile")
{
  const Secured secured;
  RedisServer& first = secured.cluster.owner("k");
  RedisServer& second = secured.cluster.other_than(first);
  Process holder = secured.start({"--ttl", "3s", "--", "sleep", "100"});
  wait_until([&] { return listening_on(first) == 1; }, "it is held, and its watchdog listens");
  Process waiter = secured.start({"--", "sh", "-c", "echo $RLOCK_SERVER"});
  wait_until([&] { return listening_on(first) == 2; }, "another waits");
  wait_until([&] { return ttl(first) < 2600; }, "time passes");
  wait_until([&] { return ttl(first) > 2600; }, "it is renewed");

  secured.cluster.move_slot("k", second);
  wait_until([&] { return listening_on(second) == 2; }, "both listen at its new place");
  wait_until([&] { return ttl(second) < 2600; }, "time passes");
  wait_until([&] { return ttl(second) > 2600; }, "it is renewed there");
  CHECK(has_sent_somebody_on(first));

  const Instant from = BootClock().now();
  holder.signal(SIGTERM);
  CHECK(holder.wait().signal == SIGTERM);
  CHECK(waiter.wait() == Exit{0});
  CHECK(BootClock().now() - from < 8s);  // by a message, not by polling after look_again_after
  CHECK(waiter.out() == secured.cluster.url() + "\n");
  CHECK(run_rlock(secured.words("status", {})).code == 1);
}

TEST_CASE("cluster: over TLS a node signed by another authority is refused, and a client without TLS is told")
{
  const Secured secured;
  const Authority other;
  const std::string url = secured.cluster.url();
  const Words in_time{"--server-timeout", "5s"};
  check_refused(url, 69, " is not signed by a trusted CA ", joined(in_time, {"--cacert", other.file()}));
  check_refused(url, 69, " is not signed by a trusted CA ", in_time);
  check_refused("redis" + url.substr(url.find('+')), 69, "(if it speaks TLS: rediss", in_time);
  CHECK(as_int(secured.cluster.command({"EXISTS", "redisson_lock_token:{k}"})) == 0);
}
