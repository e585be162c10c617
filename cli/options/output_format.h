// SPDX-License-Identifier: Apache-2.0
// For whom states of locks are printed.
#pragma once

#include "cli/options/options.h"
#include "lock/store.h"

#include <span>
#include <string>

namespace rlock::cli {

enum class Form { text, json, prometheus };

struct TypedForm {
  Text output;
  Text format;  // what --output was called
  bool json = false;
};

void describe_form(Options& options, TypedForm& typed);  // --output, --json, and --format, which --output was called
Result<Form> meant_form(const TypedForm& typed);

}  // namespace rlock::cli
