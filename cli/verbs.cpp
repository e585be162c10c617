// SPDX-License-Identifier: Apache-2.0
#include "cli/verbs.h"

#include "base/text.h"
#include "cli/suggest.h"

#include <array>

namespace rlock::cli {
namespace {

constexpr std::array table{&run_verb,          &once_verb,    &acquire_verb, &renew_verb,  &release_verb,
                           &check_verb,        &status_verb,  &ttl_verb,     &list_verb,   &wait_verb,
                           &force_unlock_verb, &version_verb, &help_verb};

}  // namespace

std::span<const Verb* const> all_verbs() { return table; }

Result<const Verb*> find_verb(std::string_view name)
{
  std::vector<std::string> names;
  for (const Verb* verb : table) {
    if (verb->name == name) {
      return verb;
    }
    names.emplace_back(verb->name);
  }
  return Error{Fault::usage, "unknown verb '" + printable(name) + "'" +
                                 did_you_mean(name, names, " (rlock help lists them)")};
}

}  // namespace rlock::cli
