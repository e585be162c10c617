// SPDX-License-Identifier: Apache-2.0
// Commands on sorted sets.
#include "engine/commands.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <limits>

namespace rlock::record {
namespace {

struct Bound {
  double score;
  bool is_exclusive;
};

double score_of(const std::string& text)
{
  if (text == "+inf" || text == "-inf") {
    return (text[0] == '-' ? -1 : 1) * std::numeric_limits<double>::infinity();
  }
  char* end = nullptr;
  const double score = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0' || std::isnan(score)) {
    throw CommandError{"ERR value is not a valid float"};
  }
  return score;
}

Bound bound_of(const std::string& text)
{
  const bool is_exclusive = text.starts_with('(');
  return {score_of(text.substr(is_exclusive ? 1 : 0)), is_exclusive};
}

bool is_within(double score, const Bound& least, const Bound& most)
{
  return (least.is_exclusive ? score > least.score : score >= least.score) &&
         (most.is_exclusive ? score < most.score : score <= most.score);
}

std::vector<std::pair<double, std::string>> within(const SortedSet* set, const Words& words)
{
  const Bound least = bound_of(words.at(2));
  const Bound most = bound_of(words.at(3));
  std::vector<std::pair<double, std::string>> found;
  if (set != nullptr) {
    std::copy_if(set->order.begin(), set->order.end(), std::back_inserter(found),
                 [&](const auto& member) { return is_within(member.first, least, most); });
  }
  return found;
}

void append(Reply& list, const std::pair<double, std::string>& member, bool with_scores)
{
  list.elements.push_back(Reply::of(member.second));
  if (with_scores) {
    list.elements.push_back(Reply::of(number_text(member.first)));
  }
}

Reply zadd(KeySpace& keys, const Words& words)
{
  const bool only_new = words.at(2) == "NX";
  const std::size_t at = only_new ? 3 : 2;
  if (words.size() < at + 2 || (words.size() - at) % 2 != 0) {
    throw CommandError{"ERR syntax error"};
  }
  std::int64_t added = 0;
  for (std::size_t member = at + 1; member < words.size(); member += 2) {
    const double score = score_of(words[member - 1]);
    SortedSet& set = Commands::make<SortedSet>(keys, words[1]);
    if (!only_new || !set.scores.contains(words[member])) {
      added += set.add(words[member], score) ? 1 : 0;
    }
  }
  return Reply::of(added);
}

Reply zcard(KeySpace& keys, const Words& words)
{
  const auto* const set = Commands::get<SortedSet>(keys, words[1]);
  return Reply::of(set == nullptr ? 0 : static_cast<std::int64_t>(set->scores.size()));
}

Reply zcount(KeySpace& keys, const Words& words)
{
  return Reply::of(static_cast<std::int64_t>(within(Commands::get<SortedSet>(keys, words[1]), words).size()));
}

Reply zpopmin(KeySpace& keys, const Words& words)
{
  auto* const set = Commands::get<SortedSet>(keys, words[1]);
  Reply popped = Reply::array();
  if (set != nullptr && !set->order.empty()) {
    const auto first = *set->order.begin();
    append(popped, first, true);
    set->remove(first.second);
    Commands::drop_if_empty(keys, words[1]);
  }
  return popped;
}

// By rank, as the scripts use it.
Reply zrange(KeySpace& keys, const Words& words)
{
  const auto* const set = Commands::get<SortedSet>(keys, words[1]);
  const bool with_scores = words.size() > 4 && words[4] == "WITHSCORES";
  const auto size = set == nullptr ? 0 : static_cast<std::int64_t>(set->order.size());
  const auto rank = [&](const std::string& text) {
    const std::int64_t at = integer_of(text);
    return at < 0 ? at + size : at;
  };
  const std::int64_t first = std::max<std::int64_t>(0, rank(words.at(2)));
  const std::int64_t last = std::min(size - 1, rank(words.at(3)));
  Reply members = Reply::array();
  for (std::int64_t at = first; at <= last; ++at) {
    append(members, *std::next(set->order.begin(), at), with_scores);
  }
  return members;
}

Reply zrangebyscore(KeySpace& keys, const Words& words)
{
  auto found = within(Commands::get<SortedSet>(keys, words[1]), words);
  bool with_scores = false;
  for (std::size_t at = 4; at < words.size(); ++at) {
    if (words[at] == "WITHSCORES") {
      with_scores = true;
    } else if (words[at] == "LIMIT" && words.at(at + 1) == "0") {
      found.resize(std::min(found.size(), static_cast<std::size_t>(integer_of(words.at(at + 2)))));
      at += 2;
    } else {
      throw CommandError{"ERR the record engine does not know ZRANGEBYSCORE … " + words[at]};
    }
  }
  Reply members = Reply::array();
  for (const auto& member : found) {
    append(members, member, with_scores);
  }
  return members;
}

Reply zremrangebyscore(KeySpace& keys, const Words& words)
{
  auto* const set = Commands::get<SortedSet>(keys, words[1]);
  const auto found = within(set, words);
  for (const auto& member : found) {
    set->remove(member.second);
  }
  Commands::drop_if_empty(keys, words[1]);
  return Reply::of(static_cast<std::int64_t>(found.size()));
}

Reply zrank(KeySpace& keys, const Words& words)
{
  const auto* const set = Commands::get<SortedSet>(keys, words[1]);
  const auto found = set == nullptr ? decltype(set->scores.end()){} : set->scores.find(words.at(2));
  if (set == nullptr || found == set->scores.end()) {
    return {};
  }
  return Reply::of(std::distance(set->order.begin(), set->order.find({found->second, found->first})));
}

Reply zrem(KeySpace& keys, const Words& words)
{
  auto* const set = Commands::get<SortedSet>(keys, words[1]);
  const bool removed = set != nullptr && set->remove(words.at(2));
  Commands::drop_if_empty(keys, words[1]);
  return Reply::of(removed ? 1 : 0);
}

Reply zscore(KeySpace& keys, const Words& words)
{
  const auto* const set = Commands::get<SortedSet>(keys, words[1]);
  const bool is_there = set != nullptr && set->scores.contains(words.at(2));
  return is_there ? Reply::of(number_text(set->scores.at(words[2]))) : Reply{};
}

}  // namespace

void add_set_commands(std::unordered_map<std::string, Command>& table)
{
  table.insert({{"ZADD", zadd},
                {"ZCARD", zcard},
                {"ZCOUNT", zcount},
                {"ZPOPMIN", zpopmin},
                {"ZRANGE", zrange},
                {"ZRANGEBYSCORE", zrangebyscore},
                {"ZREMRANGEBYSCORE", zremrangebyscore},
                {"ZRANK", zrank},
                {"ZREM", zrem},
                {"ZSCORE", zscore}});
}

}  // namespace rlock::record
