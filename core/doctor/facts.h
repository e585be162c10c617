// SPDX-License-Identifier: Apache-2.0
// What one server told about itself, and what other servers told about that server. A Result without a value says why.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>
#include "base/clock.h"
#include "base/result.h"
#include "lock/finding.h"
#include "lock/names.h"
#include "redis/transport.h"
#include "redis/url.h"

namespace rlock {

// The names and values in the answers to INFO and CONFIG GET.
class Fields {
 public:
  static Fields of_info(std::string_view text);
  void set(std::string name, std::string value) { m_all.insert_or_assign(std::move(name), std::move(value)); }

  [[nodiscard]] std::optional<std::string> text(std::string_view name) const;
  [[nodiscard]] std::optional<std::int64_t> number(std::string_view name) const;  // nullopt: missing, or no number

 private:
  std::map<std::string, std::string, std::less<>> m_all;
};

// The value of a fact before the doctor has asked for it.
inline const Error not_asked{ErrorCode::internal, "another question came first"};

// What the doctor saw with a trial lock.
struct Probe {
  std::int64_t global_listeners = 0;  // the number of clients that receive the messages to every owner (PSUBSCRIBE)
  bool heard = false;                 // whether the owner received a message
};

// How long the certificate of a server or sentinel is still valid.
struct CertificateLife {
  std::string where;  // as Endpoint::shown
  Result<std::chrono::days> left;
};

// What one sentinel told.
struct SentinelView {
  std::string where;               // as HostPort is shown
  Result<Done> answered = Done{};  // an Error: the rest is empty
  std::optional<HostPort> master;  // nullopt: the sentinel knows no master of that name
  // The answer to SENTINEL CKQUORUM; ErrorCode::refused: this user may not ask.
  Result<Done> can_fail_over = Done{};
};

// A server that sentinels name as the master, and whether it says that it is one.
struct NamedMaster {
  HostPort at;
  Result<Done> is_master;
};

struct SentinelFacts {
  std::vector<SentinelView> views;   // in the order of the URL
  std::vector<NamedMaster> masters;  // without repetition
};

struct SlotOwner {
  HostPort at;
  std::size_t replicas;  // the number of replicas that are alive, as the cluster sees it
};

struct ClusterFacts {
  Result<Fields> info = not_asked;  // the answer to CLUSTER INFO
  Result<std::vector<SlotOwner>> owners = not_asked;
};

// What a client without a name and a password may do.
enum class Anonymous { unknown, refused, may_delete };

struct Facts {
  std::string server;              // as Endpoint::shown
  std::string user;                // the user in the URL; empty: none
  std::string node;                // "db1:7000": the server or the first node of the URL; empty: the URL has no port
  std::string host;                // the host in the URL; empty: several hosts, or a host that changes
  bool asked_on_its_host = false;  // the connection uses a unix socket or the loopback device
  Anonymous anonymous = Anonymous::unknown;
  std::vector<CertificateLife> certificates = {};  // empty without TLS
  std::optional<SentinelFacts> sentinels = {};     // nullopt: the URL names no sentinels
  std::optional<Error> failure;              // the server could not be asked, and the rest is empty; nullopt: it could
  std::optional<ClusterFacts> cluster = {};  // nullopt: the URL leads to no node of a cluster
  std::vector<ClockSample> clock_samples = {};  // the last one about a second after the first
  std::chrono::microseconds local_time{};       // this host's clock at the last of clock_samples, since 1970
  Result<Fields> info = not_asked;
  Result<Fields> config = not_asked;
  Result<Probe> probe = not_asked;
};

// Whether a host name or an address means this host.
bool is_loopback(std::string_view host);

// A version as a number: 7.0.15 is 70015; 0: the text is no version.
int number_of_version(std::string_view text);

// Collects the facts about one server: asks it, its sentinels and the nodes of its cluster.

struct CollectOptions {
  LockName name;   // the name of a trial lock, from random_lock_name
  Millis ttl;      // the ttl that the locks on this server will have
  Millis timeout;  // bounds each answer
};

// The endpoint for a client without a user name and a password.
Endpoint without_password(Endpoint endpoint);

// Collects the facts. Takes about a second, because the function measures the rate of the server's clock. `transport` leads to
// `endpoint`, and `anonymous` to without_password(endpoint).
Facts collect_facts(Transport& transport, Transport& anonymous, const Endpoint& endpoint, const CollectOptions& options,
                    const Clock& clock, Rng& rng);

}  // namespace rlock
