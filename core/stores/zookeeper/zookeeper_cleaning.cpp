// SPDX-License-Identifier: Apache-2.0
#include "stores/zookeeper/zookeeper_cleaning.h"

#include <algorithm>
#include <string>
#include <vector>

namespace rlock::zookeeper {
namespace {

constexpr std::size_t looks_per_cleaning = 32;

// The parts of a commit that deletes what is below the node; empty: there is nothing, or an error.
std::vector<Operation> deletion_below(Client& client, const std::string& path, const CallLimits& limit)
{
  std::vector<Operation> parts;
  const auto found = client.ask(get_children(path), limit);
  if (found) {
    for (const std::string& child : found->children) {
      parts.push_back(remove(std::string(path).append("/").append(child), any_version));
    }
  }
  return parts;
}

Result<Done> delete_lock(Client& client, const Layout& layout, std::string_view name, std::int32_t version,
                         std::vector<Operation> parts, const CallLimits& limit)
{
  const auto log = deletion_below(client, layout.events(name), limit);  // the server deletes the empty container
  parts.insert(parts.end(), log.begin(), log.end());
  parts.push_back(remove(layout.record(name), version));
  parts.push_back(set_data(layout.deletions(), {}, any_version));
  ASSIGN_OR_RETURN(const auto deleted, client.ask(multi(parts), limit));
  return deleted.is_ok() || deleted.code == Code::no_node ? Result(Done{})
                                                          : Result<Done>(error_of(deleted.code, client.where()));
}

}  // namespace

Result<Done> erase_lock(Client& client, const Layout& layout, std::string_view name, const CallLimits& limit)
{
  const std::string path = layout.record(name);
  RETURN_IF_ERROR(client.ask(sync(path), limit));
  return delete_lock(client, layout, name, any_version, deletion_below(client, path, limit), limit);
}

void delete_useless_records(Client& client, const Layout& layout, Rng& rng, const CallLimits& limit)
{
  const auto found = client.ask(get_children(layout.locks()), limit);
  if (!found || found->children.empty()) {
    return;
  }
  const std::size_t count = std::min(found->children.size(), looks_per_cleaning);
  const auto first = static_cast<std::size_t>(below(rng, found->children.size() - count + 1));
  std::vector<Operation> reads;
  for (std::size_t i = first; i < first + count; ++i) {
    reads.push_back(get_data(layout.locks() + "/" + found->children[i], false));
  }
  const auto answers = client.ask(reads, limit);
  const std::int64_t now_us = wall_clock_ms() * 1000;
  for (std::size_t i = 0; answers && i < count; ++i) {
    const Answer& each = (*answers)[i];
    const auto data = each.is_ok() ? record_data(each.data) : std::nullopt;
    if (data && data->face.forget_us != 0 && data->face.forget_us < now_us) {
      const auto name = text_of_node(found->children[first + i]);
      if (name) {  // a node that has a listener is kept
        [[maybe_unused]] const auto deleted = delete_lock(client, layout, *name, each.stat.version, {}, limit);
      }
    }
  }
}

}  // namespace rlock::zookeeper
