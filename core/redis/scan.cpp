// SPDX-License-Identifier: Apache-2.0
#include "redis/scan.h"

#include "engine/lock_keys.h"
#include "engine/script_call.h"
#include "lua/scripts.h"
#include "redis/redis_store.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>

namespace rlock {
namespace {

using Keys = std::vector<std::string>;

// A script needs about 2 µs for each hash, so a page keeps the server busy for 2 to 4 ms. Larger pages save little.
constexpr std::string_view keys_a_page = "1500";

// More than 3 billion keys, or so many locks, are no server but a fault.
constexpr std::size_t most_pages = std::size_t{1} << 21;
constexpr std::size_t most_found = std::size_t{1} << 24;

// SCAN may name a key twice.
void sort_unique(Keys& keys)
{
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
}

Error not_a_page() { return {ErrorCode::internal, "the answer to SCAN is invalid"}; }

// The place in a scan. In one scan a server never gives the same cursor twice, also while its table of keys grows or shrinks:
// read from its lowest bit, the cursor only increases. So a scan that repeats a cursor, or that is too long, will not end.
class Cursor {
 public:
  [[nodiscard]] const std::string& text() const { return m_text; }
  [[nodiscard]] bool at_end() const { return m_pages > 0 && m_text == "0"; }

  Result<Done> advance(const std::string& next, std::size_t found)
  {
    if (next.empty()) {
      return not_a_page();
    }
    m_text = next;
    if (m_text == m_earlier || ++m_pages > most_pages || found > most_found) {
      return Error{ErrorCode::internal,
                   "SCAN does not end: page " + std::to_string(m_pages + 1) + " at cursor " + next};
    }
    if (std::has_single_bit(m_pages)) {
      m_earlier = m_text;  // Brent's algorithm: a circle of any length is found within three rounds
    }
    return Done{};
  }

 private:
  std::string m_text = "0";
  std::string m_earlier;
  std::size_t m_pages = 0;
};

// Appends the keys of this type whose name matches the glob.
Result<Done> add_keys_at(Transport& transport, std::string_view route, std::string_view glob, std::string_view type,
                         Keys& found, const PerAnswer& limits)
{
  for (Cursor cursor; !cursor.at_end();) {
    const std::array<std::string_view, 8> argv{"SCAN",  cursor.text(), "MATCH", glob,
                                               "COUNT", keys_a_page,   "TYPE",  type};
    ASSIGN_OR_RETURN(const auto page, transport.call(route, argv, limits.next()));
    const auto& parts = page.elements;
    if (parts.size() != 2) {
      return not_a_page();
    }
    for (const Reply& key : parts[1].elements) {
      found.push_back(key.text);
    }
    RETURN_IF_ERROR(cursor.advance(parts[0].text, found.size()));
  }
  return Done{};
}

// Appends the hashes that may be locks, and the holder records, whose name matches the glob.
Result<Done> add_candidates_at(Transport& transport, std::string_view route, std::string_view glob, Keys& found,
                               const PerAnswer& limits)
{
  for (Cursor cursor; !cursor.at_end();) {
    const auto words = words_of(calls::LookThrough{
        .cursor = std::string(cursor.text()), .glob = std::string(glob), .count = std::string(keys_a_page)});
    const std::vector<std::string_view> args(words.begin(), words.end());
    ASSIGN_OR_RETURN(const auto page, run_script_at(transport, route, scripts::look_through, args, limits.next()));
    const auto& parts = page.elements;
    if (parts.empty()) {
      return not_a_page();
    }
    for (std::size_t i = 1; i < parts.size(); ++i) {
      found.push_back(parts[i].text);
    }
    RETURN_IF_ERROR(cursor.advance(parts[0].text, found.size()));
  }
  return Done{};
}

// Does `add` (route, keys) at each server. The result is sorted.
template <typename Add>
Result<Keys> from_all_servers(Transport& transport, const PerAnswer& limits, const Add& add)
{
  ASSIGN_OR_RETURN(const auto routes, transport.routes(limits.next()));
  Keys keys;
  for (const std::string& route : routes) {
    RETURN_IF_ERROR(add(route, keys));
  }
  sort_unique(keys);
  return keys;
}

}  // namespace

Result<Keys> find_locks(Transport& transport, std::string_view pattern, const PerAnswer& limits)
{
  const bool is_all = pattern == "*";  // then the same pages have all holder records
  const auto candidates = from_all_servers(transport, limits, [&](const std::string& route, Keys& keys) {
    return add_candidates_at(transport, route, pattern, keys, limits);
  });
  const auto recorded =
      is_all || !candidates ? Result(Keys{}) : locks_beside(transport, "holder", pattern, "hash", limits);
  if (!candidates || !recorded) {
    return candidates ? recorded.error() : candidates.error();
  }
  Keys locks = *recorded;
  for (const std::string& key : *candidates) {
    if (!key.starts_with("rlock:holder:")) {
      locks.push_back(key);
    } else if (const std::string beside = lock_beside("holder", key); is_all && !beside.empty()) {
      locks.push_back(beside);
    }
  }
  sort_unique(locks);
  return locks;
}

std::string any_lock_script() { return scripts::any_lock.source(); }

Result<Keys> locks_beside(Transport& transport, std::string_view part, std::string_view pattern, std::string_view type,
                          const PerAnswer& limits)
{
  ASSIGN_OR_RETURN(const auto keys,
                   from_all_servers(transport, limits, [&](const std::string& route, Keys& found) -> Result<Done> {
                     for (const std::string& glob : globs_beside(part, pattern)) {
                       RETURN_IF_ERROR(add_keys_at(transport, route, glob, type, found, limits));
                     }
                     return Done{};
                   }));
  Keys locks;
  for (const std::string& key : keys) {
    locks.push_back(lock_beside(part, key));
  }
  sort_unique(locks);
  return locks;
}

}  // namespace rlock
