// SPDX-License-Identifier: Apache-2.0
// The words of a call: KEYS and ARGV, in the order of lock/calls.h.
#include "engine/script_call.h"

#include <array>
#include "engine/lock_keys.h"
#include "engine/script_store.h"

namespace rlock {

const Script& script_of(const VerbRequest& request)
{
  const KindScripts& scripts = scripts_of(request.kind);
  const std::array<const Script*, std::variant_size_v<calls::Verb>> in_order{
      &scripts.acquire, &scripts.renew, &scripts.release, &scripts.inspect,
      &scripts.force,   &scripts.raise, &scripts.skip};
  const Script* const script = in_order[request.verb.index()];
  return *script;
}

// Every script of a verb gets the same keys, and the same arguments before its own.
ScriptCall call_of(const VerbRequest& request, bool is_cluster)
{
  const LockKeys keys(request.lock, request.kind);
  ScriptCall call{.script = script_of(request), .keys = words_of<calls::Keys>(keys), .args = {}};
  add_words(call.args, calls::Every{.owner = request.owner.text(),
                                    .channel = keys.channel,
                                    .owner_channel = keys.owner_channel,
                                    .requested_mode = requested_mode(request.kind),
                                    .topology = is_cluster ? "cluster" : ""});
  std::visit([&](const auto& verb) { add_words(call.args, verb); }, request.verb);
  return call;
}

ScriptCall call_of(const ScriptRequest& request, bool is_cluster)
{
  const auto* const verb = std::get_if<VerbRequest>(&request);
  return verb != nullptr ? call_of(*verb, is_cluster) : std::get<ScriptCall>(request);
}

}  // namespace rlock
