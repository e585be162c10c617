// SPDX-License-Identifier: Apache-2.0
// RedisStore as an EventLog: reads the lists that the scripts write.
#include "store/redis/acl_error.h"
#include "store/redis/lock_keys.h"
#include "store/redis/redis_store.h"
#include "store/redis/scan.h"

#include <algorithm>

namespace rlock {

Result<std::vector<std::vector<EventLogEntry>>> RedisStore::read_logs(std::span<const EventLogQuery> queries,
                                                                      const CallLimits& limit)
{
  std::vector<Request> requests;
  for (const EventLogQuery& query : queries) {
    requests.push_back({.route_key = query.name.text(), .words = {"LRANGE", LockKeys(query.name).events, "0", "-1"}});
  }
  const auto replies = m_transport->call_each(requests, limit);
  std::vector<std::vector<EventLogEntry>> logs;
  for (std::size_t i = 0; i < replies.size(); ++i) {
    if (!replies[i]) {
      const Error& error = replies[i].error();
      return is_about_keys(error) ? naming(LockKeys(queries[i].name).events, error) : error;
    }
    if (replies[i]->kind != Reply::Kind::array) {
      return Error{ErrorCode::internal, "the answer to LRANGE is invalid"};
    }
    std::vector<EventLogEntry> entries;
    const auto& all = replies[i]->elements;
    const auto seen =
        std::find_if(all.rbegin(), all.rend(), [&](const Reply& each) { return each.text == queries[i].after; });
    const auto after = seen == all.rend() ? EventLogEntry::of(queries[i].after).time_us : 0;
    for (auto each = seen.base(); each != all.end(); ++each) {
      auto entry = EventLogEntry::of(each->text);
      if (entry.time_us > after || after == 0) {
        entries.push_back(std::move(entry));
      }
    }
    logs.push_back(std::move(entries));
  }
  return logs;
}

Result<std::vector<LockName>> RedisStore::find_logs(std::string_view pattern, const PerAnswer& limits)
{
  const auto locks = locks_beside(*m_transport, "events", pattern, "list", limits);
  if (!locks) {
    return locks.error();
  }
  std::vector<LockName> found;
  for (const std::string& lock : *locks) {
    if (auto name = LockName::parse(lock)) {
      found.push_back(*std::move(name));
    }
  }
  return found;
}

bool RedisStore::is_about_one_lock(const Error& refused) const { return is_about_keys(refused); }

}  // namespace rlock
