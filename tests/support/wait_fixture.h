// SPDX-License-Identifier: Apache-2.0
// The locks of a server as one waiter sees them. The test decides which locks are free, which messages the waiter gets, and which
// of its calls fail. Used from one thread.
#pragma once

#include "lock/store.h"
#include "lock/waiting.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <sys/eventfd.h>
#include <unistd.h>

namespace rlock::test {

struct WaitFixture {
  // The server's state of one lock.
  struct Lock {
    bool is_free = false;
    bool is_taken = false;
    bool is_queued = false;
    bool is_full = false;  // takes no waiter with max_waiting and without a ticket
    std::uint64_t ahead = 0;
    std::uint64_t ticket = 0;  // the ticket of the waiter
    Hint said;
  };

  std::vector<Lock> locks;
  std::vector<std::string> calls;           // "look 0", "stand 0" (in line), "check 0", "leave 0", "listen"
  std::function<void()> with_call;          // runs at the same time as the last of these calls
  std::function<ServerTime()> server_time;  // empty: the server does not tell its time
  int fail_at = 0;                          // the call that fails, from 1; 0: none
  int fails_from = 0;                       // this call and all that follow fail; 0: none
  bool takes_effect = false;                // a failed call takes effect on the server
  bool had_spoken = false;                  // the server has answered before the failed call
  ErrorCode failure = ErrorCode::unreachable;
  bool is_late = false;  // a failed call got no answer in time
  int drops = 0;         // how often the waiter dropped its connection
  bool drops_listener = false;
  int readable = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);

  explicit WaitFixture(std::size_t count) : locks(count) {}
  WaitFixture(const WaitFixture&) = delete;
  WaitFixture& operator=(const WaitFixture&) = delete;
  ~WaitFixture() { ::close(readable); }

  void hand_over(std::size_t which, std::optional<Handover> handover = std::nullopt)
  {
    if (std::exchange(locks[which].is_queued, false)) {
      locks[which].is_taken = true;
      say(which, {.look_in = Millis{0}, .handover = handover});
    }
  }
  void say(std::size_t which, const Hint& hint)
  {
    locks[which].said = hint;
    ::eventfd_write(readable, 1);
  }
  void cut_ears()
  {
    drops_listener = true;
    ::eventfd_write(readable, 1);
  }

  [[nodiscard]] std::vector<LockSpec> specs() const;  // the locks k:0, k:1 and so on

  // "taken: 1; queues: 0 2"
  [[nodiscard]] std::string show() const
  {
    std::string taken, queues;
    for (std::size_t i = 0; i < locks.size(); ++i) {
      taken += locks[i].is_taken ? " " + std::to_string(i) : "";
      queues += locks[i].is_queued ? " " + std::to_string(i) : "";
    }
    return "taken:" + taken + "; queues:" + queues;
  }
  [[nodiscard]] std::string requests() const
  {
    std::string text;
    for (const std::string& call : calls) {
      text += (text.empty() ? "" : ", ") + call;
    }
    return text;
  }
  [[nodiscard]] std::ptrdiff_t count(const std::string& call) const
  {
    return std::count_if(calls.begin(), calls.end(), [&](const std::string& one) { return one.starts_with(call); });
  }
};

// The fixture must outlive the store.
std::unique_ptr<LockStore> store_of(WaitFixture& fixture);

}  // namespace rlock::test
