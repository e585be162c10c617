// SPDX-License-Identifier: Apache-2.0
#include "store/script/script_reply.h"

#include "base/text.h"
#include "lock/lock_kind.h"

namespace rlock {
namespace {

// The advice about a key that holds another kind than the caller asked for.
std::string advice_for_key(const std::string& word)
{
  const KindDescriptor* const kind = kind_in_key(word);
  return std::string(kind != nullptr ? kind->advice : "use another --key");
}

// The number at the key is not the requested number of permits.
std::string other_number(const LockName& name, std::int64_t there, std::int64_t requested, bool are_held)
{
  const std::string number = std::to_string(there);
  if (are_held) {
    return "the permits of " + printable(name.text()) + " are " + number + ", not " + std::to_string(requested) +
           " (give --permits " + number + "; their number may change while none is held)";
  }
  const std::string if_meant =
      there > 0 ? "give --permits " + number + " if that many permits are meant, else " : "give ";
  return "the key " + printable(name.text()) + " holds the number " + number + ", of which rlock has no record (" +
         if_meant + "another --key)";
}

}  // namespace

std::string content_of_key(const std::string& word)
{
  const KindDescriptor* const kind = kind_in_key(word);
  return kind != nullptr ? std::string(kind->with_article) : "a " + word;
}

Error ScriptReply::unexpected(const Script& script, const LockName& name) const
{
  if (is("other")) {
    return {ErrorCode::config, "the key " + printable(name.text()) + " holds " + printable(content_of_key(text(1))) +
                                   ", not a lock of this kind (" + advice_for_key(text(1)) + ")"};
  }
  if (is("differs")) {
    return {ErrorCode::config, other_number(name, integer(1), integer(2), integer(3) == 1)};
  }
  if (is("denied")) {
    return {ErrorCode::refused, "the server's ACL refuses " + printable(text(1)) + " on " + printable(text(2)) +
                                    " to this user (grant it, because without it the lock could not be released; "
                                    "rlock acl prints all rules)"};
  }
  return {ErrorCode::internal, "the answer of " + std::string(script.name) + " is invalid"};
}

}  // namespace rlock
