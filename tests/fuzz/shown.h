// SPDX-License-Identifier: Apache-2.0
// What every output of rlock promises, whatever a server says.
#pragma once

#include "base/result.h"
#include "cli/output/show.h"
#include "lock/store.h"

#include <string_view>

namespace rlock::test {

// A fixed time: "now" of all outputs.
inline constexpr std::int64_t noon = 1'795'262'400'000;  // 2026-11-21 12:00:00 UTC

// Valid UTF-8 without control characters, except the ends of lines, and without characters that change the direction of text or
// have no width.
void promise_clean(std::string_view text);
// The same without ends of lines, and not empty: a message.
void promise_one_line(std::string_view text);
// The text of an Error, which the log escapes: what the log prints of it is a message.
void promise_error(const Error& error);
template <typename T>
void promise_result(const Result<T>& result)
{
  if (!result) {
    promise_error(result.error());
  }
}
// One line of valid JSON, without raw control characters.
void promise_json(std::string_view text);

// Prints the lock in every form, and checks each.
void promise_shown(const LockState& state);
void promise_shown(const cli::ShownEvent& event);

}  // namespace rlock::test
