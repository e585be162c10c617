// SPDX-License-Identifier: Apache-2.0
// Help, made from the table of verbs and what each tells CLI11.
#pragma once

#include "cli/verbs/verb.h"

#include <string>

namespace rlock::cli {

std::string overview();
std::string help_of(const Verb& verb);        // --help
std::string brief_help_of(const Verb& verb);  // -h: options by name
std::string help_of_servers();                // rlock help servers: the URLs, and the options that many verbs share

}  // namespace rlock::cli
