// SPDX-License-Identifier: Apache-2.0
#include "engine/script_reply.h"

#include "base/text.h"
#include "engine/script_call.h"
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
std::string other_number(const LockName& name, const answers::Differs& found)
{
  const std::string number = std::to_string(found.permits);
  if (found.are_held) {
    return "the permits of " + printable(name.text()) + " are " + number + ", not " + std::to_string(found.requested) +
           " (give --permits " + number + "; their number may change while none is held)";
  }
  const std::string if_meant =
      found.permits > 0 ? "give --permits " + number + " if that many permits are meant, else " : "give ";
  return "the key " + printable(name.text()) + " holds the number " + number + ", of which rlock has no record (" +
         if_meant + "another --key)";
}

}  // namespace

std::string content_of_key(const std::string& word)
{
  const KindDescriptor* const kind = kind_in_key(word);
  return kind != nullptr ? std::string(kind->with_article) : "a " + word;
}

Error unexpected(const VerbRequest& request, const Reply& reply)
{
  if (const auto other = answer_in<answers::Other>(reply)) {
    return {ErrorCode::config, "the key " + printable(request.lock.text()) + " holds " +
                                   printable(content_of_key(other->content)) + ", not a lock of this kind (" +
                                   advice_for_key(other->content) + ")"};
  }
  if (const auto differs = answer_in<answers::Differs>(reply)) {
    return {ErrorCode::config, other_number(request.lock, *differs)};
  }
  if (const auto denied = answer_in<answers::Denied>(reply)) {
    return {ErrorCode::refused, "the server's ACL refuses " + printable(denied->command) + " on " +
                                    printable(denied->key) +
                                    " to this user (grant it, because without it the lock could not be released; "
                                    "rlock acl prints all rules)"};
  }
  return {ErrorCode::internal, "the answer of " + std::string(script_of(request).name) + " is invalid"};
}

}  // namespace rlock
