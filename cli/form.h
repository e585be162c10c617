// SPDX-License-Identifier: Apache-2.0
// For whom states of locks are printed.
#pragma once

#include "cli/options.h"
#include "lock/store.h"

#include <span>
#include <string>

namespace rlock::cli {

enum class Form { text, json, prometheus };

struct TypedForm {
  Text format;
  bool json = false;
};

void describe_form(Options& options, TypedForm& typed);  // --json and --format
Result<Form> meant_form(const TypedForm& typed);

}  // namespace rlock::cli
