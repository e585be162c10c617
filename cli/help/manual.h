// SPDX-License-Identifier: Apache-2.0
// The parts of the manual pages that are made from the same values as help, in mdoc(7).
#pragma once

#include "cli/options/verb.h"

#include <string>

namespace rlock::cli {

// A subsection: the synopsis of the verb, its options, the exit codes that are its own, and at the end its examples.
std::string mdoc_of(const Verb& verb);

std::string mdoc_of_verbs(Verbs verbs);  // a list of all verbs

// The topics.
std::string mdoc_of_servers();  // the URLs, and the options that add_server_options adds
std::string mdoc_of_exits();    // the table of base/exit_code.h
std::string mdoc_of_json();     // a subsection for each object

}  // namespace rlock::cli
