// SPDX-License-Identifier: Apache-2.0
// Standard output, for the verbs that print.
#pragma once

#include "base/result.h"

#include <string_view>

namespace rlock::cli {

void print(std::string_view text);  // as it is; failures are kept for finish_output

// ErrorCode::os when not all of it could be written: half an answer must not look like one.
Result<Done> finish_output();

// Whether the program that read standard output has ended, as with `rlock watch | head`. If so, what is left is dropped, and
// finish_output succeeds.
bool drop_unread_output();

}  // namespace rlock::cli
