// SPDX-License-Identifier: Apache-2.0
#include "cli/verbs/table.h"

#include "cli/help/suggest.h"
#include "cli/options/options.h"

#include <array>

namespace rlock::cli {
namespace {

constexpr std::array table{
    &run_verb,    &flock_verb,  &once_verb,  &forget_verb, &acquire_verb,    &renew_verb,   &release_verb,
    &check_verb,  &status_verb, &ttl_verb,   &list_verb,   &watch_verb,      &wait_verb,    &force_unlock_verb,
    &events_verb, &doctor_verb, &bench_verb, &acl_verb,    &completion_verb, &version_verb, &help_verb,
};

// What other tools call it.
struct Elsewhere {
  std::string_view name;
  std::string_view advice;
};
constexpr std::array elsewhere{
    Elsewhere{"unlock", " (rlock release lets go of one's own lock, rlock force-unlock takes it from its holder)"},
    Elsewhere{"lock", " (rlock run holds it while a command runs, rlock acquire while a script does)"},
    Elsewhere{"exec", " (try rlock run)"},
    Elsewhere{"ls", " (did you mean 'list'?)"},
    Elsewhere{"ps", " (did you mean 'list'?)"},
    Elsewhere{"top", " (did you mean 'watch'?)"},
    Elsewhere{"servers", " (try rlock help servers)"},
};

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
  for (const Elsewhere& other : elsewhere) {
    if (other.name == name) {
      return usage("unknown verb '" + std::string(name) + "'" + std::string(other.advice));
    }
  }
  if (name.find('/') != std::string_view::npos) {
    return usage("unknown verb '" + shown_word(name) + "' (to run a command: rlock run -k KEY -- " + shown_word(name) +
                 ")");
  }
  return Error{ErrorCode::usage,
               "unknown verb '" + shown_word(name) + "'" + did_you_mean(name, names, " (rlock help lists them)")};
}

}  // namespace rlock::cli
