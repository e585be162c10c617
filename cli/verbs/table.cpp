// SPDX-License-Identifier: Apache-2.0
#include "cli/verbs/table.h"

#include "cli/help/suggest.h"
#include "cli/help/topics.h"
#include "cli/options/options.h"

#include <array>

namespace rlock::cli {
namespace {

constexpr std::array table{
    &run_verb,     &flock_verb,        &once_verb,    &forget_verb, &acquire_verb, &renew_verb,
    &release_verb, &check_verb,        &status_verb,  &ttl_verb,    &list_verb,    &watch_verb,
    &wait_verb,    &force_unlock_verb, &history_verb, &events_verb, &doctor_verb,  &bench_verb,
    &acl_verb,     &completion_verb,   &version_verb, &help_verb,
};

// A name that another tool or a user has for a verb.
struct OtherName {
  std::string_view name;
  std::string_view advice;
};
constexpr std::array other_names{
    OtherName{"unlock", " (rlock release releases a lock by its token, rlock force-unlock takes it from its holder)"},
    OtherName{"lock", " (rlock run holds it while a command runs, rlock acquire while a script does)"},
    OtherName{"exec", " (try rlock run)"},
    OtherName{"ls", " (did you mean 'list'?)"},
    OtherName{"ps", " (did you mean 'list'?)"},
    OtherName{"top", " (did you mean 'watch'?)"},
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
  for (const OtherName& other : other_names) {
    if (other.name == name) {
      return usage("unknown verb '" + std::string(name) + "'" + std::string(other.advice));
    }
  }
  if (find_topic(name) != nullptr) {
    return usage("unknown verb '" + std::string(name) + "' (try rlock help " + std::string(name) + ")");
  }
  if (name.find('/') != std::string_view::npos) {
    return usage("unknown verb '" + shown_word(name) + "' (to run a command: rlock run -k KEY -- " + shown_word(name) +
                 ")");
  }
  return Error{ErrorCode::usage,
               "unknown verb '" + shown_word(name) + "'" + did_you_mean(name, names, " (rlock help lists them)")};
}

}  // namespace rlock::cli
