// SPDX-License-Identifier: Apache-2.0
#include "cli/options/verb.h"

namespace rlock::cli {
namespace {

struct Nothing {};
Result<Done> no_effect(const Given&, Nothing&) { return Done{}; }

constexpr OptionRow<Nothing> help_rows[] = {
    {{.names = "-h", .help = "show the options by name and exit"}, no_effect},
    {{.names = "--help", .help = "show this and exit"}, no_effect},
};

}  // namespace

VerbAction add_verb_options(const Verb& verb, OptionTable& table)
{
  static Nothing nothing;
  VerbAction action = verb.add_options(table);
  table.add(help_rows, nothing);
  return action;
}

}  // namespace rlock::cli
