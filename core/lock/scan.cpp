// SPDX-License-Identifier: Apache-2.0
#include "lock/scan.h"

#include "lock/names.h"

#include <algorithm>
#include <array>
#include <iterator>

namespace rlock {
namespace {

using Keys = std::vector<std::string>;

// SCAN may name a key twice.
void tidy(Keys& keys)
{
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
}

Result<Keys> keys_at(Transport& transport, std::string_view route, std::string_view pattern, std::string_view type,
                     const Limit& limit)
{
  Keys keys;
  std::string cursor = "0";
  do {
    const std::array<std::string_view, 8> argv{"SCAN", cursor, "MATCH", pattern, "COUNT", "1000", "TYPE", type};
    const auto page = transport.call(route, argv, limit);
    if (!page) {
      return page.error();
    }
    if (page->elements.size() != 2) {
      return Error{Fault::internal, "the answer to SCAN makes no sense"};
    }
    cursor = page->elements[0].text;
    for (const Reply& key : page->elements[1].elements) {
      keys.push_back(key.text);
    }
  } while (cursor != "0");
  return keys;
}

}  // namespace

Result<Keys> keys_like(Transport& transport, std::string_view pattern, std::string_view type, const Limit& limit)
{
  const auto routes = transport.routes(limit);
  if (!routes) {
    return routes.error();
  }
  Keys keys;
  for (const std::string& route : *routes) {
    auto found = keys_at(transport, route, pattern, type, limit);
    if (!found) {
      return found.error();
    }
    std::move(found->begin(), found->end(), std::back_inserter(keys));
  }
  tidy(keys);
  return keys;
}

Result<Keys> locks_beside(Transport& transport, std::string_view part, std::string_view pattern, std::string_view type,
                          const Limit& limit)
{
  Keys locks;
  for (const std::string& glob : globs_beside(part, pattern)) {
    const auto keys = keys_like(transport, glob, type, limit);
    if (!keys) {
      return keys.error();
    }
    for (const std::string& key : *keys) {
      locks.push_back(lock_beside(part, key));
    }
  }
  tidy(locks);
  return locks;
}

}  // namespace rlock
