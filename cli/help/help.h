// SPDX-License-Identifier: Apache-2.0
// The text of help, made from the verbs and the rows of their options, and the topics of `rlock help` that are no verbs.
#pragma once

#include "cli/options/verb.h"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rlock {
struct Engine;  // stores/engine.h
}

namespace rlock::cli {

std::string overview(Verbs verbs);
std::string help_of(const Verb& verb);        // --help
std::string brief_help_of(const Verb& verb);  // -h: options by name

// The topics.
std::string help_of_servers();  // the URLs, and the options of all verbs that ask a server
std::string help_of_json();
std::string help_of_exits();  // the table of base/exit_code.h

// The exit codes of a verb: the verb's own lines and the common codes, those with numbers in ascending order.
struct ShownExit {
  std::string code;
  std::string_view meaning;
};
std::vector<ShownExit> exits_of(const Verb& verb);
std::vector<ShownExit> own_exits_of(const Verb& verb);  // in the order of Verb::own_exits

struct Topic {
  std::string_view name;
  std::string_view summary;  // what the topic describes
  std::string (*help)();     // rlock help NAME
  std::string (*mdoc)();     // rlock help --mdoc NAME: a part of a manual page
};

std::span<const Topic> all_topics();
const Topic* find_topic(std::string_view name);  // nullptr: there is none

// A manual page that is neither of a verb nor of a store. help names it and does not have its text.
struct ManualPage {
  std::string_view name;
  int section;
  std::string_view summary;
  std::string_view words;  // "recipes,cron": what else means the page; completions offer the first word
};

std::span<const ManualPage> all_manual_pages();
const ManualPage* find_manual_page(std::string_view name);  // by its name or one of its words; nullptr: there is none
std::string help_of_manual_page(const ManualPage& page);    // "see man rlock-recipes"

// A store has a manual page of its own, rlock-PAGE(7).
std::string summary_of(const Engine& engine);
std::string help_of_store(const Engine& engine);  // rlock help PAGE

std::string_view version();  // "0.1.0"

}  // namespace rlock::cli
