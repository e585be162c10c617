// SPDX-License-Identifier: Apache-2.0
// The text of help, made from the table of verbs and their options.
#pragma once

#include "cli/verbs/verb.h"

#include <string>
#include <string_view>
#include <vector>

namespace rlock::cli {

std::string overview();
std::string help_of(const Verb& verb);        // --help
std::string brief_help_of(const Verb& verb);  // -h: options by name

// The topics.
std::string help_of_servers();  // the URLs, and the options of all verbs that ask a server
std::string help_of_json();

// The exit codes of a verb: the verb's own lines and the common codes, those with numbers in ascending order.
struct ShownExit {
  std::string code;
  std::string_view meaning;
};
std::vector<ShownExit> exits_of(const Verb& verb);

}  // namespace rlock::cli
