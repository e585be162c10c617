// SPDX-License-Identifier: Apache-2.0
// Help, made from the table of verbs and what each tells CLI11.
#pragma once

#include "cli/verb.h"

#include <string>

namespace rlock::cli {

std::string overview();
std::string help_of(const Verb& verb);

}  // namespace rlock::cli
