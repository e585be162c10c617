// SPDX-License-Identifier: Apache-2.0
#include "stores/zookeeper/zookeeper_log.h"

#include <algorithm>
#include <array>
#include <utility>
#include "base/text.h"
#include "engine/recorded_log.h"

namespace rlock::zookeeper {

Result<std::vector<std::vector<std::string>>> EventNodes::read_each(std::span<const std::string_view> names,
                                                                    const CallLimits& limit)
{
  std::vector<Operation> questions{sync(m_layout.all_events())};
  for (const std::string_view name : names) {
    questions.push_back(get_children(m_layout.events(name)));
  }
  ASSIGN_OR_RETURN(auto found, m_client.ask(questions, limit));
  for (const Answer& each : found) {
    if (!each.is_ok() && each.code != Code::no_node) {
      return error_of(each.code, m_client.where());
    }
  }
  std::vector<Operation> reads;
  std::vector<std::size_t> lock_of_read;
  for (std::size_t i = 0; i < names.size(); ++i) {
    auto& children = found[1 + i].children;
    std::ranges::sort(children);
    for (const std::string& child : children) {
      reads.push_back(get_data(m_layout.events(names[i]) + "/" + child, false));
      lock_of_read.push_back(i);
    }
  }
  std::vector<std::vector<std::string>> logs(names.size());
  if (reads.empty()) {
    return logs;
  }
  ASSIGN_OR_RETURN(auto answers, m_client.ask(reads, limit));
  for (std::size_t i = 0; i < answers.size(); ++i) {
    Answer& each = answers[i];
    if (each.is_ok()) {  // else it was deleted meanwhile
      record::set_fence_of_commit(logs[lock_of_read[i]].emplace_back(std::move(each.data)), each.stat.mzxid);
    }
  }
  return logs;
}

Result<Done> EventNodes::add_to(std::vector<Operation>& parts, std::string_view name, const record::LogChange& log,
                                bool asks_first, const CallLimits& limit)
{
  std::vector<std::string> there;
  if (asks_first) {
    const std::array questions{create(m_layout.events(name), {}, CreateMode::container, m_is_private),
                               get_children(m_layout.events(name))};
    ASSIGN_OR_RETURN(auto answers, m_client.ask(questions, limit));
    there = std::move(answers[1].children);
  }
  const std::size_t head = m_layout.events(name).size() + 1;
  for (const std::string& node : there) {
    const std::int64_t id = leading_number(node);
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
