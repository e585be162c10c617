// SPDX-License-Identifier: Apache-2.0
// Reads and writes the object of a lock. Private to stores/s3.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>
#include "base/clock.h"
#include "base/result.h"
#include "stores/s3/s3_connection.h"
#include "stores/s3/s3_object.h"

namespace rlock::s3 {

// The object of a lock, as it was read or written last.
struct SeenObject {
  std::string lock;
  std::string etag;  // empty: there is none
  LockObject object;
  std::int64_t time_us = 0;  // the store's clock, at `at` or before
  Instant at;
};

// `etag`: of the state that is known; then the answer may be not_modified.
Request read_request(std::string_view lock, const std::string& etag = {});
// Writes `next` if the object is still the one that was seen. `number`: a random one.
Request write_request(const SeenObject& seen, const LockObject& next, std::uint64_t number);

// ErrorCode::config: the object is none of rlock.
Result<SeenObject> seen_in(Answer answer, std::string_view lock, const Connection& connection);

// Whether the name fits a key. ErrorCode::config: it is too long.
Result<Done> check_name(std::string_view lock, const Connection& connection);

// Of all locks below the prefix, in the order of their keys.
Result<std::vector<std::string>> lock_names(Connection& connection, const CallLimits& limit);

}  // namespace rlock::s3
