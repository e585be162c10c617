// SPDX-License-Identifier: Apache-2.0
// A server of a quorum that does what a test has it do, and keeps a record of what it was asked.
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

// What is shared between the test and the store, which belongs to a thread of its own.
class FakeServer {
 public:
  enum class Mood { fine, down, hung, late };  // hung: silent to the limit. late: granted, and then silent

  void be(Mood mood);
  void fail_after(const FakeServer& other);  // down, but it says so only when the other was asked; before any request
  void forget_all();                         // restarted, and it has lost its data
  void set_fence(std::uint64_t fence);
  void have_a_clock(double pace);  // and tell its time with each renewal; 1: as ours
  [[nodiscard]] std::optional<std::string> holder() const;
  [[nodiscard]] std::uint64_t fence() const;
  [[nodiscard]] std::vector<std::string> asked() const;  // "acquire o1", …

 private:
  friend class FakeStore;
  mutable std::mutex m_mutex;
  Mood m_mood = Mood::fine;
  std::optional<std::string> m_holder;
  std::uint64_t m_fence = 0;
  std::optional<std::uint64_t> m_agreed;
  std::optional<double> m_pace;
  const FakeServer* m_after = nullptr;  // not guarded
  std::vector<std::string> m_asked;
};

std::unique_ptr<LockStore> store_on(std::shared_ptr<FakeServer> server, const Clock& clock);

}  // namespace rlock::test
