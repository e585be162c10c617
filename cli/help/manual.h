// SPDX-License-Identifier: Apache-2.0
// What help says, as the manual pages have it.
#pragma once

#include "cli/verbs/verb.h"

#include <string>

namespace rlock::cli {

// A subsection of a page in mdoc(7): how the verb is called, its options, exit codes and examples.
std::string mdoc_of(const Verb& verb);

// A list of the options that add_server_options() adds.
std::string mdoc_of_servers();

// A list of all verbs.
std::string mdoc_of_verbs();

}  // namespace rlock::cli
