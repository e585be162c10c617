// SPDX-License-Identifier: Apache-2.0
#include "stores/etcd/etcd_native_line.h"

#include <algorithm>
#include "base/text.h"
#include "stores/etcd/etcd_presences.h"

namespace rlock::etcd {
namespace {

using record::Contender;
using record::LineChange;
using record::LineView;
using record::LookFor;

std::string line_of(std::string_view lock) { return std::string(lock) + "/"; }

Range all_of(std::string_view lock) { return {.key = line_of(lock), .range_end = end_of_prefix(line_of(lock))}; }

std::string without_zeros(std::string digits)
{
  digits.erase(0, std::min(digits.find_first_not_of('0'), digits.size()));
  return digits;
}

Contender contender_in(const KeyValue& key, std::string_view lock)
{
  Contender contender{.name = key.key.substr(lock.size() + 1), .order = key.create_revision};
  const auto slash = contender.name.rfind('/');  // a lock below this one counts as well
  const auto last = contender.name.substr(slash == std::string::npos ? 0 : slash + 1);
  contender.is_lock = key.lease != 0 && last == without_zeros(name_of_lease(key.lease));
  return contender;
}

}  // namespace

Result<Done> EtcdNativeLine::check_name(const LockName& lock) const
{
  const std::string line = line_of(lock.text());
  const std::string own = m_shared.layout().all().key;
  if (!line.starts_with(own) && !own.starts_with(line)) {
    return Done{};
  }
  return Error{ErrorCode::config, "the lock " + printable(lock.text()) +
                                      " cannot have the format etcd, because rlock keeps its own keys below " +
                                      printable(own) + " (give the lock another name, or the URL another prefix)"};
}

std::string EtcdNativeLine::contender_for(const record::PresenceId& presence) const { return without_zeros(presence); }

Result<LineView> EtcdNativeLine::look(const LockName& lock, const LookFor& what, const CallLimits& limit)
{
  const std::string& own = what.own;
  Connection& connection = m_shared.connection();
  Range front = all_of(lock.text());
  front.limit = what.waiting ? 1 + record::most_waiting_shown : 2;
  front.keys_only = true;
  front.oldest_first = true;
  Txn txn;
  txn.success.emplace_back(std::move(front));
  if (!own.empty()) {
    txn.success.emplace_back(Range{.key = line_of(lock.text()) + own, .keys_only = true});
  }
  ASSIGN_OR_RETURN(const auto answer, connection.txn(txn, limit));
  LineView view{.first = {}, .own = {}, .next = {}, .state = answer.header.revision};
  std::int64_t lease_of_first = 0;
  for (std::size_t i = 0; i < answer.answers.size(); ++i) {
    for (const KeyValue& key : answer.answers[i].keys) {
      const Contender contender = contender_in(key, lock.text());
      if (i > 0) {
        view.own = contender;
        continue;
      }
      if (!view.first) {
        view.first = contender;
        lease_of_first = key.lease;
      } else if (what.waiting && contender.is_lock) {
        view.waiting.push_back(contender);
      }
      if (!view.next && contender.name != own) {
        view.next = contender;
      }
    }
  }
  if (lease_of_first != 0 && view.first->name != own) {
    const auto left = connection.time_to_live(lease_of_first, limit);
    if (!left && left.error().code != ErrorCode::refused) {
      return left.error();
    }
    view.first->lasts =
        left ? std::optional<Millis>(std::chrono::seconds(std::max<std::int64_t>(left->ttl, 0))) : std::nullopt;
  }
  return view;
}

Range EtcdNativeLine::first_of(std::string_view lock)
{
  Range first = all_of(lock);
  first.limit = 1;
  first.keys_only = true;
  return first;
}

bool EtcdNativeLine::tell_when_gone(const LockName& lock, const std::string& contender, std::int64_t since,
                                    const News& news, const CallLimits& limit)
{
  return m_shared.tell_deletion(line_of(lock.text()) + contender, since, {.channel = news.channel, .text = news.text},
                                limit);
}

void EtcdNativeLine::change(std::string_view lock, const LineChange& change, Txn& txn)
{
  for (const std::string& each : change.leaves) {
    txn.success.emplace_back(Delete{.key = line_of(lock) + each});
  }
  if (change.none_came_since) {
    Range all = all_of(lock);
    txn.compare.push_back({.target = Compare::Target::modification,
                           .result = Compare::Result::less,
                           .key = std::move(all.key),
                           .revision = *change.none_came_since + 1,
                           .range_end = std::move(all.range_end)});
  }
  if (change.needed) {
    txn.compare.push_back({.target = Compare::Target::create,
                           .result = Compare::Result::equal,
                           .key = line_of(lock) + change.needed->name,
                           .revision = change.needed->order});
  }
  if (!change.stand) {
    return;
  }
  std::string key = line_of(lock) + change.stand->name;
  txn.compare.push_back({.target = Compare::Target::create,
                         .result = change.stand->is_new ? Compare::Result::equal : Compare::Result::greater,
                         .key = key});
  txn.success.emplace_back(
      Put{.key = std::move(key), .value = {}, .lease = lease_in(change.stand->presence).value_or(0)});
}

}  // namespace rlock::etcd
