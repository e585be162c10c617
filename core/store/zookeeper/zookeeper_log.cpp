// SPDX-License-Identifier: Apache-2.0
#include "store/zookeeper/zookeeper_log.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>
#include "store/record/recorded_log.h"

namespace rlock::zookeeper {

Result<std::vector<std::string>> EventNodes::read(std::string_view name, const CallLimits& limit)
{
  const std::string path = m_layout.events(name);
  const std::array questions{sync(path), get_children(path)};
  auto found = m_client.ask(questions, limit);
  if (!found) {
    return found.error();
  }
  for (const Answer& each : *found) {
    if (!each.is_ok() && each.code != Code::no_node) {
      return error_of(each.code, m_client.where());
    }
  }
  std::ranges::sort((*found)[1].children);
  std::vector<Operation> reads;
  for (const std::string& child : (*found)[1].children) {
    reads.push_back(get_data(std::string(path).append("/").append(child), false));
  }
  std::vector<std::string> entries;
  if (reads.empty()) {
    return entries;
  }
  auto answers = m_client.ask(reads, limit);
  if (!answers) {
    return answers.error();
  }
  for (Answer& each : *answers) {
    if (each.is_ok()) {  // else it was deleted meanwhile
      record::set_fence_of_commit(entries.emplace_back(std::move(each.data)), each.stat.mzxid);
    }
  }
  return entries;
}

Result<Done> EventNodes::add_to(std::vector<Operation>& parts, std::string_view name, const record::LogChange& log,
                                bool asks_first, const CallLimits& limit)
{
  std::vector<std::string> there;
  if (asks_first) {
    const std::array questions{create(m_layout.events(name), {}, CreateMode::container, m_is_private),
                               get_children(m_layout.events(name))};
    auto answers = m_client.ask(questions, limit);
    if (!answers) {
      return answers.error();
    }
    there = std::move((*answers)[1].children);
  }
  const std::size_t head = m_layout.events(name).size() + 1;
  for (const std::string& node : there) {
    std::int64_t id = 0;
    std::from_chars(node.data(), node.data() + node.size(), id);
    const bool is_written =
        std::ranges::any_of(log.written, [&](const record::LoggedEvent& event) { return event.id == id; });
    const bool is_over = (log.first_kept && id < *log.first_kept) || (log.last_kept && id > *log.last_kept);
    if (is_over && !is_written) {
      parts.push_back(zookeeper::remove(m_layout.events(name) + "/" + node, any_version));
    }
  }
  for (const record::LoggedEvent& event : log.written) {
    const std::string path = m_layout.event(name, event.id);
    const bool is_there = std::ranges::find(there, path.substr(head)) != there.end();
    parts.push_back(is_there ? set_data(path, event.entry, any_version)
                             : create(path, event.entry, CreateMode::persistent, m_is_private));
  }
  return Done{};
}

}  // namespace rlock::zookeeper
