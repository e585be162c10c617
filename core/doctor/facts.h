// SPDX-License-Identifier: Apache-2.0
// What one server told about itself, and what others told about it. A Result without a value says why.
#pragma once

#include "base/clock_sample.h"
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
  [[nodiscard]] std::optional<std::int64_t> number(
      std::string_view name) const;  // missing as well when it is no number

 private:
  std::map<std::string, std::string, std::less<>> m_all;
};

// Before a question.
inline const Error not_asked{ErrorCode::internal, "another question came first"};

// What became of a lock that the doctor took, refused to another owner, renewed and released.
struct Probe {
  std::int64_t global_listeners = 0;  // clients that hear the messages to every owner (PSUBSCRIBE)
  bool heard = false;                 // whether the owner heard a message to it
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
  std::optional<HostPort> master;  // missing: it knows no master of that name
  // By SENTINEL CKQUORUM; ErrorCode::refused: this user may not ask.
  Result<Done> can_fail_over = Done{};
};

// A server that sentinels name as the master, and whether it says that it is one.
struct NamedMaster {
  HostPort at;
  Result<Done> is_master;
};

struct SentinelFacts {
  std::vector<SentinelView> views;   // in the order of the URL
  std::vector<NamedMaster> masters;  // each once
};

struct SlotOwner {
  HostPort at;
  std::size_t replicas;  // that are alive, as the cluster sees it
};

struct ClusterFacts {
  Result<Fields> info = not_asked;  // CLUSTER INFO
  Result<std::vector<SlotOwner>> owners = not_asked;
};

// What a client without a name and a password may do.
enum class Anonymous { unknown, refused, may_delete };

struct Facts {
  std::string server;              // as Endpoint::shown
  std::string user;                // of the URL; empty: none
  std::string node;                // "db1:7000", the server or the first node of the URL; empty: it has no port
  std::string host;                // of the server, as its URL names it; empty: several hosts, or one that changes
  bool asked_on_its_host = false;  // through a socket or the loopback device
  Anonymous anonymous = Anonymous::unknown;
  std::vector<CertificateLife> certificates = {};  // empty without TLS
  std::optional<SentinelFacts> sentinels = {};     // for a URL with sentinels
  std::optional<Error> failure;                    // the server could not be asked; the rest is empty
  std::optional<ClusterFacts> cluster = {};        // for the URL of a cluster, or of a node of one
  std::vector<ClockSample> clock_samples = {};     // the last one about a second after the first
  std::chrono::microseconds local_time{};          // since 1970, by this host's clock, at the last of clock_samples
  Result<Fields> info = not_asked;
  Result<Fields> config = not_asked;
  Result<Probe> probe = not_asked;
};

// A host name or an address.
bool is_loopback(std::string_view host);

// 7.0.15 is 70015; 0 where the text is no version.
int number_of_version(std::string_view text);

}  // namespace rlock
