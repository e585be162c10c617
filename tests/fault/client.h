// SPDX-License-Identifier: Apache-2.0
// A client of a lock, made of what `rlock run` is made of except its job: acquire_all, the watchdogs of its leases, release_all.
// It tells Claims when it thinks that it holds the lock.
#pragma once

#include "base/clock.h"
#include "base/log.h"
#include "fault/claims.h"
#include "lease/lease.h"
#include "process/signals.h"
#include "run/acquire_all.h"
#include "run/release.h"
#include "run/run.h"
#include "support/silent_observer.h"
#include "support/slowness.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace rlock::test {

struct FaultTimes {
  Millis ttl = Millis{1000} * slowness;
  Millis server_timeout = Millis{300} * slowness;
};

// Signals as `rlock run` has them. The test case has its own mask again afterwards.
class SignalsOfRun {
 public:
  SignalsOfRun()
  {
    ::pthread_sigmask(SIG_SETMASK, nullptr, &m_mask);
    signals.block();
  }
  ~SignalsOfRun() { ::pthread_sigmask(SIG_SETMASK, &m_mask, nullptr); }
  SignalsOfRun(const SignalsOfRun&) = delete;
  SignalsOfRun& operator=(const SignalsOfRun&) = delete;

  Signals signals;

 private:
  sigset_t m_mask{};
};

struct ClientOptions {
  std::string name;
  FaultTimes times = {};
  std::vector<std::string> urls = {};  // of one server, or of a quorum
  std::vector<std::string> keys = {};
  LockKind kind = {};
  std::optional<Millis> wait = Millis{0};
  std::vector<std::string> environment = {};  // RLOCK_HELD of an outer run
  bool latest = false;
  bool cancel_in_progress = false;
};

class Client {
 public:
  Client(const ClientOptions& options, Claims& claims, Signals& signals)
      : m_name(options.name),
        m_claims(claims),
        m_request(request_of(options)),
        m_context{.clock = m_clock, .rng = m_rng, .signals = signals, .log = m_log}
  {
  }

  Result<AcquireAllResult> acquire()
  {
    m_locks = std::make_unique<LockSet>(m_request, m_context, "/bin/true");
    const WaitPolicy policy = wait_policy(m_request.wait, m_request.server.timeout, m_clock);
    auto result = acquire_all(m_request, m_context, policy, m_context.signals.stop(), *m_locks);
    if (result && std::holds_alternative<AllAcquired>(*result)) {
      begin();
    }
    return result;
  }

  // The same for one lock, without the fork of the job that acquire_all prepares for the first waiter in line.
  Result<LockSession::Acquired> wait_in_line()
  {
    m_locks = std::make_unique<LockSet>(m_request, m_context, "/bin/true");
    const WaitPolicy policy = wait_policy(m_request.wait, m_request.server.timeout, m_clock);
    SilentObserver waiting;
    auto result = m_locks->sessions.front().acquire(policy, StopToken::never(), waiting);
    if (result && std::holds_alternative<Done>(*result)) {
      begin();
    }
    return result;
  }

  // Holds the locks until then, or until one of them is lost; false: it was.
  bool hold(Instant end)
  {
    while (m_clock.now() < end && m_leases->with_event() == nullptr) {
      if (m_clock.now() >= m_leases->due()) {
        m_leases->watch();
      }
      m_clock.sleep_until(std::min(end, m_clock.now() + Millis{5}), StopToken::never());
    }
    return m_leases->with_event() == nullptr;
  }

  // Its job is dead. The reason why it had to die; nullptr: there is none.
  const LeaseEvent* give_up()
  {
    m_claims.drop(m_name);
    Lease* const lease = m_leases->with_event();
    return lease != nullptr ? &*lease->event() : nullptr;
  }

  // Tries for so long.
  ReleaseFindings release(Millis time)
  {
    m_leases->stop_watchdog();
    return release_all(m_request, m_context, m_locks->sessions, {.give_up = m_clock.now() + time});
  }

  [[nodiscard]] std::vector<HeldLock> held_locks() const { return m_locks->held_locks(); }
  [[nodiscard]] Instant valid_until() const { return m_locks->first_to_expire().lease().budget().valid_until(); }
  [[nodiscard]] const RunRequest& request() const { return m_request; }

 private:
  void begin()
  {
    m_claims.claim(m_name, valid_until());
    m_leases = std::make_unique<LeaseGroup>(
        LeaseGroupOptions{
            .on_moved = [this](const LeaseBudget& lease) { m_claims.renew(m_name, lease.valid_until()); }},
        m_clock, m_log);
    for (LockSession& session : m_locks->sessions) {
      m_leases->add(session.lease());
    }
  }

  static RunRequest request_of(const ClientOptions& options)
  {
    RunRequest request;
    for (const std::string& url : options.urls) {
      request.server.endpoints.push_back(*parse_server(url));
    }
    request.server.timeout = options.times.server_timeout;
    request.server.restart_guard = false;  // new servers count at once
    for (const std::string& key : options.keys) {
      request.names.insert(*LockName::parse(key));
    }
    request.kind = options.kind;
    request.ttl = options.times.ttl;
    request.wait = options.wait;
    request.argv = {"true"};
    request.environment = options.environment;
    request.latest = options.latest;
    request.cancel_in_progress = options.cancel_in_progress;
    request.label = options.name;
    return request;
  }

  const std::string m_name;
  Claims& m_claims;
  const BootClock m_clock;
  SystemRng m_rng;
  const Log m_log{Verbosity::quiet};
  const RunRequest m_request;
  const RunContext m_context;
  std::unique_ptr<LockSet> m_locks;
  std::unique_ptr<LeaseGroup> m_leases;  // uses m_locks
};

}  // namespace rlock::test
