// SPDX-License-Identifier: Apache-2.0
// The rows of the kinds; and the words of a call: KEYS and ARGV, in the order of lock/calls.h.
#include "engine/script_call.h"

#include <array>
#include "engine/lock_keys.h"
#include "lua/scripts.h"

namespace rlock {
namespace {

const KindScripts plain{scripts::plain_acquire, scripts::plain_renew, scripts::plain_release, scripts::plain_inspect,
                        scripts::plain_force,   scripts::plain_raise, scripts::plain_skip};
const KindScripts rw{scripts::rw_acquire, scripts::rw_renew, scripts::rw_release, scripts::rw_inspect,
                     scripts::rw_force,   scripts::rw_raise, scripts::rw_skip};
const KindScripts permits{scripts::permits_acquire, scripts::permits_renew, scripts::permits_release,
                          scripts::permits_inspect, scripts::permits_force, scripts::permits_raise,
                          scripts::permits_skip};
const KindScripts string{scripts::string_acquire, scripts::string_renew, scripts::string_release,
                         scripts::string_inspect, scripts::string_force, scripts::string_raise,
                         scripts::string_skip};

// The rows, in the order of LockKind's alternatives.
const std::array<ScriptedKind, std::variant_size_v<LockKind>> scripted_kinds{{
    {plain, "", "", "redisson_lock__channel:"},
    {rw, reader_mode, "-rw", "redisson_rwlock:"},
    {rw, writer_mode, "-rw", "redisson_rwlock:"},
    {permits, "", "-permits", "redisson_sc:"},
    {string, "", "-string", ""},
}};

}  // namespace

const ScriptedKind& scripted_kind(const LockKind& kind) { return scripted_kinds[kind.index()]; }

std::string requested_mode(const LockKind& kind)
{
  const auto* wanted = std::get_if<Permits>(&kind);
  return wanted != nullptr ? std::to_string(wanted->limit) : std::string(scripted_kind(kind).requested_mode);
}

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
