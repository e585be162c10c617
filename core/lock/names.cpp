// SPDX-License-Identifier: Apache-2.0
#include "lock/names.h"

#include "base/text.h"

#include <algorithm>
#include <cstddef>

namespace rlock {
namespace {

constexpr std::size_t longest_lock_name = 1024;

// Redisson looks for any brace; a cluster looks for a pair of braces with text between. Where the two rules differ, a lock
// and its channel, which follows Redisson's naming, are in different slots.
bool splits_over_slots(std::string_view name)
{
  const auto open = name.find('{');
  if (open == std::string_view::npos) {
    return name.find('}') != std::string_view::npos;
  }
  const auto close = name.find('}', open);
  return close == std::string_view::npos || close == open + 1;
}

// "<uuid>:<pid>"
bool is_generated_id(std::string_view id)
{
  constexpr std::size_t uuid = 36;
  constexpr std::string_view digits = "0123456789";
  return id.size() > uuid + 1 && id[uuid] == ':' && id[8] == '-' && id[13] == '-' && id[18] == '-' && id[23] == '-' &&
         id.substr(0, uuid).find_first_not_of("0123456789abcdef-") == std::string_view::npos &&
         id.find_first_not_of(digits, uuid + 1) == std::string_view::npos;
}

}  // namespace

Result<LockName> LockName::parse(std::string_view text)
{
  if (text.empty()) {
    return Error{ErrorCode::usage, "the key is empty (give the lock a name, such as --key stock)"};
  }
  if (text.size() > longest_lock_name) {
    return Error{ErrorCode::usage, "the key has " + std::to_string(text.size()) + " bytes (" +
                                       std::to_string(longest_lock_name) + " at most)"};
  }
  if (std::any_of(text.begin(), text.end(), is_control)) {
    return Error{ErrorCode::usage, "the key \"" + printable(text) + "\" has a control character in it (leave it out)"};
  }
  if (splits_over_slots(text)) {
    return Error{ErrorCode::config,
                 "the key \"" + printable(text) +
                     "\" has a brace that would split the lock over two cluster slots (use none, or a "
                     "pair with something between, such as {stock}:eu)"};
  }
  return LockName(std::string(text));
}

Result<Done> check_can_be_taken(const LockName& name)
{
  for (const std::string_view prefix : {own_key_prefix, fence_key_prefix}) {
    if (name.text().starts_with(prefix)) {
      return Error{ErrorCode::config, "the key \"" + printable(name.text()) + "\" begins with " + std::string(prefix) +
                                          ", as the keys that rlock keeps beside a lock (choose another name)"};
    }
  }
  return Done{};
}

Owner Owner::fresh(Rng& rng, int pid) { return Owner(random_uuid(rng) + ":" + std::to_string(pid)); }

Hold Hold::nested_in(Owner ancestor, Rng& rng, int pid)
{
  Hold hold(std::move(ancestor));
  hold.id = Owner::fresh(rng, pid).text();
  return hold;
}

// A foreign client's token may contain a slash, but hardly one that a generated id follows.
Hold Hold::of_token(std::string_view token)
{
  const auto slash = token.rfind('/');
  const std::string_view id = slash == std::string_view::npos ? "" : token.substr(slash + 1);
  if (slash == 0 || !is_generated_id(id)) {
    return Hold(Owner::of(std::string(token)));
  }
  Hold hold(Owner::of(std::string(token.substr(0, slash))));
  hold.id = id;
  return hold;
}

}  // namespace rlock
