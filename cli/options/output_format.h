// SPDX-License-Identifier: Apache-2.0
// For whom states of locks are printed.
#pragma once

#include "cli/options/options.h"
#include "lock/store.h"

#include <span>
#include <string>

namespace rlock::cli {

enum class Form { text, json, prometheus };

struct RawForm {
  Text output;
  Text format;  // what --output was called
  bool json = false;
};

void describe_form(Options& options, RawForm& typed);  // --output, --json, and --format, which --output was called
Result<Form> resolve_form(const RawForm& typed);

}  // namespace rlock::cli
