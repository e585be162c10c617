// SPDX-License-Identifier: Apache-2.0
// A store that answers no request. A stand-in of a test derives from it and overrides the requests that its case makes.
#pragma once

#include "lock/store.h"

#include <memory>
#include <span>
#include <string>
#include <utility>

namespace rlock::test {

// Offers nothing that an engine may leave out. Thread-safe.
class BareStore : public LockStore {
 public:
  explicit BareStore(std::string text = "no answer", ErrorCode code = ErrorCode::unreachable)
      : m_error{code, std::move(text)}
  {
  }

  Result<Attempt> acquire(const LockSpec&, const Owner&, const AcquireOptions&, const CallLimits&) override
  {
    return m_error;
  }
  Result<ReentryResult> reenter(const LockSpec&, const Hold&, const CallLimits&) override { return m_error; }
  Result<bool> is_queued(const LockSpec&, const Owner&, const CallLimits&) override { return m_error; }
  Result<Renewal> renew(const LockSpec&, const Owner&, const RenewOptions&, const CallLimits&) override
  {
    return m_error;
  }
  Result<Release> release(const LockSpec&, const Hold&, const ReleaseOptions&, const CallLimits&) override
  {
    return m_error;
  }
  Result<LockState> inspect(const LockName&, const CallLimits&) override { return m_error; }
  Result<std::unique_ptr<Listener>> listen(std::span<const LockSpec>, const Owner&, const CallLimits&) override
  {
    return m_error;
  }
  void drop_connection() override {}

 private:
  Error m_error;
};

}  // namespace rlock::test
