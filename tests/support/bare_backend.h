// SPDX-License-Identifier: Apache-2.0
// A backend of the record engine without messages, event logs and names. A stand-in of a test derives from it, has one record, and
// overrides what its case needs besides.
#pragma once

#include "engine/record_backend.h"

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rlock::test {

class BareBackend : public record::Backend {
 public:
  Result<std::unique_ptr<MessageSource>> listen(std::span<const LockChannel>, const CallLimits&) override
  {
    return Error{ErrorCode::unreachable, "nobody listens"};
  }
  Result<std::vector<std::string>> events(std::string_view, const CallLimits&) override
  {
    return std::vector<std::string>{};
  }
  Result<std::vector<std::string>> list(std::string_view, Which, const CallLimits&) override
  {
    return std::vector<std::string>{};
  }
  void drop_connection() override {}
};

}  // namespace rlock::test
