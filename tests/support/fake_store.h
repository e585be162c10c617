// SPDX-License-Identifier: Apache-2.0
// One server of a quorum, controlled by the test. It records all requests.
#pragma once

#include "lock/abilities.h"
#include "lock/store.h"

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace rlock::test {

// The state that the test shares with the store, which runs on a thread of its own.
class FakeServer {
 public:
  enum class Behavior { fine, down, hung, late };  // hung: silent to the limit. late: granted, and then silent

  void be(Behavior mood);
  void fail_after(
      const FakeServer& other);         // down, but it fails only after the other was asked; call it before any request
  void refuse(std::string request);     // "raise": it fails, and all other requests do not
  void ask_for(std::string by);         // an operator wants the lock: each renewal says so
  void be_stopping(Millis kill_after);  // the holder says at each look that it stops its job, which gets so long
  void have_rlock_holders();            // whose renewals it can refuse; else they are foreign
  void forget_all();                    // as after a restart that lost all data
  void set_fence(std::uint64_t fence);
  void have_a_clock(double pace);  // tells its time with each renewal; pace 1: as this machine's clock
  [[nodiscard]] std::optional<std::string> holder() const;
  [[nodiscard]] std::uint64_t fence() const;
  [[nodiscard]] std::vector<std::string> asked() const;  // "acquire o1", …

 private:
  friend class FakeStore;
  mutable std::mutex m_mutex;
  Behavior m_mood = Behavior::fine;
  std::optional<std::string> m_holder;
  std::uint64_t m_fence = 0;
  std::optional<std::uint64_t> m_agreed;
  std::optional<double> m_pace;
  std::string m_refused;
  std::optional<ForceRequest> m_asked_by;
  bool m_is_rlock = false;
  std::optional<Millis> m_kill_after;   // of a holder that stops its job
  const FakeServer* m_after = nullptr;  // not guarded
  std::vector<std::string> m_asked;
};

std::unique_ptr<LockStore> store_on(std::shared_ptr<FakeServer> server, const Clock& clock);

}  // namespace rlock::test
