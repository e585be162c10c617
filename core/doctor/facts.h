// SPDX-License-Identifier: Apache-2.0
// What was found out about one server, as it said it. What is missing was not permitted.
#pragma once

#include "base/clock.h"
#include "base/result.h"
#include "server/url.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rlock {

// Names and values, as INFO and CONFIG GET tell them.
class Fields {
 public:
  static Fields of_info(std::string_view text);
  void set(std::string name, std::string value) { m_all.insert_or_assign(std::move(name), std::move(value)); }

  [[nodiscard]] std::optional<std::string> text(std::string_view name) const;
  [[nodiscard]] std::optional<std::int64_t> number(std::string_view name) const;  // also missing when it is none

 private:
  std::map<std::string, std::string, std::less<>> m_all;
};

// One look at the server's clock.
struct Tick {
  Instant sent;
  Instant answered;
  std::int64_t wall_us;    // our time of day when it was answered
  std::int64_t server_us;  // its own
};

// What became of a lock of our own that was taken, refused to another, renewed and released.
struct Probe {
  std::int64_t eavesdroppers = 0;  // clients that hear what is said to any owner
  bool heard = false;              // whether the owner heard what was said to it
};

// How long the certificate of one of the servers, or sentinels, is still good.
struct CertificateLife {
  std::string where;  // as Endpoint::shown
  Result<std::chrono::days> left;
};

// What one sentinel said.
struct SentinelSaid {
  std::string where;               // as HostPort is shown
  Result<Done> heard = Done{};     // an Error: it said nothing; what follows is empty
  std::optional<HostPort> master;  // missing: it knows none of that name
  Result<Done> fail_over =
      Done{};  // whether there could be one, by SENTINEL CKQUORUM; ErrorCode::refused: it may not be asked that
};

// Whom sentinels name, and whether he says so himself.
struct NamedMaster {
  HostPort at;
  Result<Done> is_one;
};

struct SentinelFacts {
  std::vector<SentinelSaid> said;    // in the order of the URL
  std::vector<NamedMaster> masters;  // each once
};

struct SlotOwner {
  HostPort at;
  std::size_t replicas;  // that live, as the cluster sees it
};

struct ClusterFacts {
  std::optional<Fields> info;  // CLUSTER INFO
  std::optional<std::vector<SlotOwner>> owners;
};

// What a client without a name and a password may do.
enum class Anonymous { unknown, refused, may_delete };

struct Facts {
  std::string server;              // as Endpoint::shown
  std::string host;                // on which it runs, as far as its URL says; empty: on several, or on one that moves
  bool asked_on_its_host = false;  // through a socket or the loopback device
  Anonymous anonymous = Anonymous::unknown;
  std::vector<CertificateLife> certificates = {};  // without TLS none
  std::optional<SentinelFacts> sentinels = {};     // where the URL names some
  std::optional<Error> failure;                    // nothing could be asked; all that follows is empty
  std::optional<ClusterFacts> cluster = {};        // where the URL says that it is one
  std::vector<Tick> ticks;                         // the last one about a second after the first
  std::optional<Fields> info;
  std::optional<Fields> config;
  Result<Probe> probe = Error{ErrorCode::internal, "not tried"};
};

// Of a host name or an address.
bool is_loopback(std::string_view host);

// 7.0.15 is 70015; 0 where the text is no version.
int number_of_version(std::string_view text);

}  // namespace rlock
