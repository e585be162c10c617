// SPDX-License-Identifier: Apache-2.0
// Standard output, for the verbs that print.
#pragma once

#include "base/result.h"

#include <string_view>

namespace rlock::cli {

void print(std::string_view text);  // as it is; failures are kept for finish_output

// Fault::os when not all of it could be written: half an answer must not look like one.
Result<Done> finish_output();

}  // namespace rlock::cli
