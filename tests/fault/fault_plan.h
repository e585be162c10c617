// SPDX-License-Identifier: Apache-2.0
// Which request fails, and how. One plan may be shared by several relays; then it counts the requests of all of them.
#pragma once

#include "support/relay.h"

#include <array>
#include <atomic>
#include <mutex>
#include <optional>
#include <string>

namespace rlock::test {

struct FaultName {
  Fault fault;
  const char* name;
};
inline constexpr std::array all_faults{
    FaultName{Fault::not_sent, "not sent"},
    FaultName{Fault::half_sent, "half sent"},
    FaultName{Fault::answer_lost, "answer lost"},
    FaultName{Fault::answer_cut, "answer cut in half"},
    FaultName{Fault::answer_stuck, "answer stuck in the middle"},
    FaultName{Fault::answer_dripped, "answer dripped"},
    FaultName{Fault::answer_late, "answer late, in time"},
    FaultName{Fault::answer_too_late, "answer after the deadline"},
    FaultName{Fault::request_late, "request delivered after the deadline"},
    FaultName{Fault::sent_twice, "sent twice"},
};

// So many of them are of a request or an answer that does not arrive whole.
inline constexpr std::size_t broken_answers = 5;

// The ways that differ for the scripts of a kind of lock. The others differ only for the connection.
inline constexpr std::array faults_of_scripts{all_faults[0], all_faults[2], all_faults[8], all_faults[9]};

// Thread-safe.
class FaultPlan {
 public:
  // The `at`th request, counted from 1, fails; `for_good`: all later ones as well.
  FaultPlan(FaultName how, int at, bool for_good) : m_how(how), m_at(at), m_for_good(for_good) {}

  // Called once for each request.
  std::optional<Fault> next()
  {
    const int number = ++m_requests;
    const bool fails = number == m_at || (m_for_good && number > m_at);
    return fails ? std::optional(m_how.fault) : std::nullopt;
  }

  // For a relay whose requests fail by this plan, or of which none fails. No other request changes what a test looks at.
  [[nodiscard]] RelayOptions options_for(RelayOptions relay, bool fails = true)
  {
    if (fails) {
      relay.choose = [this](std::string_view) { return next(); };
    }
    relay.executing = &m_executing;
    return relay;
  }

  [[nodiscard]] bool injected() const { return m_requests >= m_at; }
  [[nodiscard]] bool for_good() const { return m_for_good; }
  [[nodiscard]] Fault how() const { return m_how.fault; }
  [[nodiscard]] std::string shown() const
  {
    return "request " + std::to_string(m_at) + (m_for_good ? " and all later ones: " : ": ") + m_how.name;
  }

 private:
  const FaultName m_how;
  const int m_at;
  const bool m_for_good;
  std::atomic<int> m_requests = 0;
  std::mutex m_executing;
};

}  // namespace rlock::test
