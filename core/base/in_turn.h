// SPDX-License-Identifier: Apache-2.0
// Asks the members of a group, of which each can serve, until one does.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>
#include "base/clock.h"
#include "base/defaults.h"
#include "base/result.h"
#include "base/wait.h"

namespace rlock {

// In a random order. In the order of the URL, all clients would come to its first member.
template <typename Member>
std::vector<Member> shuffled(std::vector<Member> members, Rng& rng)
{
  for (std::size_t left = members.size(); left > 1; --left) {
    std::swap(members[left - 1], members[below(rng, left)]);
  }
  return members;
}

// The error of one of so many members, of which none serves.
inline Error of_all_members(Error error, std::size_t members)
{
  if (members > 1 && is_passing(error.code)) {
    const std::size_t others = members - 1;
    error.text += others == 1 ? "; the other member fails as well"
                              : "; the other " + std::to_string(others) + " members fail as well";
  }
  return error;
}

// Calls ask(member, limit) for one member after the other, until one serves, or refuses for a reason that another one would have as
// well. Each gets its part of the time that is left, because a member that is off does not answer. `members`: at least one. The Error is
// that of the member that was asked last and says that the others failed, or interrupted().
template <typename Members, typename Ask>
Result<Done> in_turn(const Members& members, const Clock& clock, const CallLimits& limit, Ask ask)
{
  Result<Done> answer = Done{};
  std::size_t untried = members.size();
  for (const auto& member : members) {
    if (untried < members.size() && limit.stop.requested()) {
      return interrupted();
    }
    answer = ask(member, share_of(limit, clock.now(), untried--));
    if (answer || !is_passing(answer.error().code)) {
      return answer;
    }
  }
  return answer ? answer : Result<Done>(of_all_members(answer.error(), members.size()));
}

}  // namespace rlock
