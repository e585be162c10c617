// SPDX-License-Identifier: Apache-2.0
#include "store/redis/scan.h"

#include "lua/scripts.h"
#include "store/redis/lock_keys.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <span>

namespace rlock {
namespace {

using Keys = std::vector<std::string>;

// SCAN may name a key twice.
void sort_unique(Keys& keys)
{
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
}

Result<Keys> keys_at(Transport& transport, std::string_view route, std::string_view pattern, std::string_view type,
                     const PerAnswer& limits)
{
  Keys keys;
  std::string cursor = "0";
  do {
    const std::array<std::string_view, 8> argv{"SCAN", cursor, "MATCH", pattern, "COUNT", "1000", "TYPE", type};
    const auto page = transport.call(route, argv, limits.next());
    if (!page) {
      return page.error();
    }
    if (page->elements.size() != 2 || page->elements[0].text.empty()) {
      return Error{ErrorCode::internal, "the answer to SCAN is invalid"};
    }
    cursor = page->elements[0].text;
    for (const Reply& key : page->elements[1].elements) {
      keys.push_back(key.text);
    }
  } while (cursor != "0");
  return keys;
}

// rlock's own hashes beside a lock may look like a lock.
bool is_bookkeeping(const std::string& key)
{
  return key.starts_with("rlock:holder:") || key.starts_with("rlock:waiters");
}

// Appends the hashes that look like locks.
Result<Done> add_locks_among(Transport& transport, std::string_view route, std::span<const std::string> hashes,
                             Keys& found, const CallLimits& limit)
{
  const std::vector<std::string_view> args(hashes.begin(), hashes.end());
  const auto reply = run_script_at(transport, route, scripts::look_through, args, limit);
  if (!reply) {
    return reply.error();
  }
  for (const Reply& key : reply->elements) {
    found.push_back(key.text);
  }
  return Done{};
}

}  // namespace

Result<Keys> keys_like(Transport& transport, std::string_view pattern, std::string_view type, const PerAnswer& limits)
{
  const auto routes = transport.routes(limits.next());
  if (!routes) {
    return routes.error();
  }
  Keys keys;
  for (const std::string& route : *routes) {
    auto found = keys_at(transport, route, pattern, type, limits);
    if (!found) {
      return found.error();
    }
    std::move(found->begin(), found->end(), std::back_inserter(keys));
  }
  sort_unique(keys);
  return keys;
}

Result<Keys> hashes_like_locks(Transport& transport, std::string_view pattern, const PerAnswer& limits)
{
  constexpr std::size_t batch = 2000;  // keeps the server busy for some milliseconds
  const auto routes = transport.routes(limits.next());
  if (!routes) {
    return routes.error();
  }
  Keys found;
  for (const std::string& route : *routes) {
    auto hashes = keys_at(transport, route, pattern, "hash", limits);
    if (!hashes) {
      return hashes.error();
    }
    std::erase_if(*hashes, is_bookkeeping);
    for (std::span<const std::string> rest = *hashes; !rest.empty();) {
      const auto first = rest.first(std::min(batch, rest.size()));
      rest = rest.subspan(first.size());
      if (const auto added = add_locks_among(transport, route, first, found, limits.next()); !added) {
        return added.error();
      }
    }
  }
  sort_unique(found);
  return found;
}

Result<Keys> locks_beside(Transport& transport, std::string_view part, std::string_view pattern, std::string_view type,
                          const PerAnswer& limits)
{
  Keys locks;
  for (const std::string& glob : globs_beside(part, pattern)) {
    const auto keys = keys_like(transport, glob, type, limits);
    if (!keys) {
      return keys.error();
    }
    for (const std::string& key : *keys) {
      locks.push_back(lock_beside(part, key));
    }
  }
  sort_unique(locks);
  return locks;
}

}  // namespace rlock
