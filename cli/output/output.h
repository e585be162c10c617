// SPDX-License-Identifier: Apache-2.0
// Standard output, for the verbs that print.
#pragma once

#include "base/result.h"

#include <string_view>

namespace rlock::cli {

void print(std::string_view text);  // unchanged; finish_output reports a failure

// ErrorCode::os: not all of the output could be written. A caller must not take half an answer for a whole one.
Result<Done> finish_output();

// Whether the reader of standard output has ended, as with `rlock watch | head`. If so, drops the output that is left, so that
// finish_output succeeds.
bool drop_unread_output();

}  // namespace rlock::cli
