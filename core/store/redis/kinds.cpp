// SPDX-License-Identifier: Apache-2.0
#include "store/redis/kinds.h"

#include "lua/scripts.h"

#include <array>

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

// The rows, in the order of Mode's alternatives.
const std::array<RedisKind, std::variant_size_v<Mode>> rows{{
    {plain, "", "", "redisson_lock__channel:"},
    {rw, reader_mode, "-rw", "redisson_rwlock:"},
    {rw, writer_mode, "-rw", "redisson_rwlock:"},
    {permits, "", "-permits", "redisson_sc:"},
    {string, "", "-string", ""},
}};

}  // namespace

const RedisKind& redis_kind(const Mode& mode) { return rows[mode.index()]; }

std::string requested_mode(const Mode& mode)
{
  const auto* wanted = std::get_if<Permits>(&mode);
  return wanted != nullptr ? std::to_string(wanted->limit) : std::string(redis_kind(mode).requested_mode);
}

}  // namespace rlock
