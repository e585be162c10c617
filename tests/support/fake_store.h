// SPDX-License-Identifier: Apache-2.0
// One server of a quorum, controlled by the test. It records all requests.
#pragma once

#include "lock/store.h"

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace rlock::test {

// The state that the test shares with the store, which runs on a thread of its own.
class FakeServer {
 public:
  enum class Behavior { fine, down, hung, late };  // hung: no answer by the deadline. late: grants, but gives no answer

  void be(Behavior mood);
  void fail_after(
      const FakeServer& other);      // down, but fails only after `other` got a request; call this before any request
  void refuse(std::string request);  // "raise": this request fails, and all others do not
  void ask_for(std::string by);      // each renewal says that `by` requests the release
  void be_stopping(Millis kill_after);  // each look says that the holder stops its job, which gets `kill_after`
  void
  have_rlock_holders();  // the holders are rlocks, whose renewals the server can refuse; the default: foreign clients
  void forget_all();     // the server loses all data, as in a restart
  void set_fence(std::uint64_t fence);
  void give_less(Millis less, Millis earlier);  // than is asked for; the leases count from an earlier moment
  void hold_back(Millis answers);               // for so long, whatever the caller's deadline
  void have_a_clock(double pace);               // tells its time with each renewal; pace 1: as this machine's clock
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
  Millis m_less{0};
  Millis m_earlier{0};
  Millis m_held_back{0};
  std::string m_refused;
  std::optional<ForceRequest> m_asked_by;
  bool m_is_rlock = false;
  bool m_is_revoked = false;
  std::optional<Millis> m_kill_after;   // set by be_stopping()
  const FakeServer* m_after = nullptr;  // not guarded by the mutex
  std::vector<std::string> m_asked;
};

std::unique_ptr<LockStore> store_on(std::shared_ptr<FakeServer> server, const Clock& clock);

}  // namespace rlock::test
