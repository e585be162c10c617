// SPDX-License-Identifier: Apache-2.0
#include "cli/verbs/known_locks.h"

#include <set>

namespace rlock::cli {

bool is_glob(std::string_view word) { return word.find_first_of("*?[") != std::string_view::npos; }

Result<std::vector<Subject>> resolve_subjects(const RawKeys& raw, std::span<const std::string> operands)
{
  std::vector<Subject> subjects;
  std::vector<std::string> keys;
  for (const std::string& word : operands) {
    if (is_glob(word)) {
      subjects.emplace_back(Pattern{resolve_pattern(raw, word)});
    } else {
      keys.push_back(word);
    }
  }
  if (raw.keys.empty() && keys.empty()) {
    return subjects;
  }
  ASSIGN_OR_RETURN(const auto names, resolve_keys(raw, keys));
  subjects.insert(subjects.begin(), names.begin(), names.end());
  return subjects;
}

Result<std::vector<LockName>> known_locks(const OpenedStore& opened, const RawKeys& raw,
                                          std::span<const std::string> operands)
{
  ASSIGN_OR_RETURN(auto subjects, resolve_subjects(raw, operands));
  if (subjects.empty()) {
    subjects.emplace_back(Pattern{resolve_pattern(raw, "*")});
  }
  std::vector<LockName> locks;
  std::set<LockName> seen;
  const auto add = [&](const LockName& name) {
    if (seen.insert(name).second) {
      locks.push_back(name);
    }
  };
  for (const Subject& subject : subjects) {
    if (const auto* const name = std::get_if<LockName>(&subject)) {
      add(*name);
      continue;
    }
    ASSIGN_OR_RETURN(const auto known, opened.store->find_known(std::get<Pattern>(subject).glob, opened.per_answer()));
    for (const LockName& name : known) {
      add(name);
    }
  }
  return locks;
}

}  // namespace rlock::cli
