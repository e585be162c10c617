// SPDX-License-Identifier: Apache-2.0
#include "store/redis/script_reply.h"

#include "base/text.h"
#include "lock/mode.h"

namespace rlock {
namespace {

// What to do about a key that holds another kind than the caller asked for.
std::string advice_for_key(const std::string& word)
{
  const KindDescriptor* const kind = kind_in_key(word);
  return std::string(kind != nullptr ? kind->advice : "use another --key");
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
    const std::string there = std::to_string(integer(1));
    if (there == "0") {
      return {ErrorCode::config, "the permits of " + printable(name.text()) +
                                     " are 0, because the record of their holders was " +
                                     "deleted (delete the key on the server)"};
    }
    return {ErrorCode::config, "the permits of " + printable(name.text()) + " are " + there + ", not " +
                                   std::to_string(integer(2)) + " (give --permits " + there +
                                   "; their number may change while none is held)"};
  }
  if (is("denied")) {
    return {ErrorCode::refused, "the server's ACL refuses " + printable(text(1)) + " on " + printable(text(2)) +
                                    " to this user (grant it, because without it the lock could not be released; "
                                    "rlock acl prints all rules)"};
  }
  return {ErrorCode::internal, "the answer of " + std::string(script.name) + " is invalid"};
}

}  // namespace rlock
