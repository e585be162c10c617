// SPDX-License-Identifier: Apache-2.0
#include "stores/zookeeper/zookeeper_listener.h"

#include <fcntl.h>
#include <algorithm>
#include <array>
#include <utility>
#include "base/hex.h"
#include "base/wait.h"

namespace rlock::zookeeper {
namespace {

constexpr std::chrono::microseconds longest_pause{
    5000};  // between two tries to change a record that others change as well

constexpr Millis longest_reading{500};  // of messages whose event has come

}  // namespace

WatchingSource::WatchingSource(std::shared_ptr<SharedClient> shared, Layout layout, const Clock& clock)
    : m_shared(std::move(shared)),
      m_client(*m_shared->client),
      m_layout(std::move(layout)),
      m_clock(clock),
      m_readable(::open("/dev/null", O_RDONLY | O_CLOEXEC))
{
  m_shared->sources.push_back(this);
}

WatchingSource::~WatchingSource()
{
  for (const Node& node : m_nodes) {
    if (m_client.session_number() == m_session) {
      m_client.send_ahead(remove(node.path, any_version));
    }
    m_shared->changed.erase(node.path);
  }
  std::erase(m_shared->sources, this);
}

// The node comes with a new version of the record, or with a record.
Result<Done> WatchingSource::make(Node& node, const CallLimits& limit)
{
  const std::string record = m_layout.record(node.lock);
  const bool is_private = !m_client.spec().user.empty();
  for (;;) {
    const std::array look{sync(record), get_data(record, false)};
    ASSIGN_OR_RETURN(const auto state, m_client.ask(look, limit));
    const Answer& old = state[1];
    if (!old.is_ok() && old.code != Code::no_node) {
      return error_of(old.code, m_client.where());
    }
    node.path = record + "/" + listener_name(hex_of(m_rng.next()), node.lock, node.channel);
    const std::array parts{old.is_ok() ? set_data(record, old.data, old.stat.version)
                                       : create(record, encoded({}, {}), CreateMode::persistent, is_private),
                           create(node.path, encoded(Inbox{}), CreateMode::ephemeral, is_private)};
    const std::array write{multi(parts), get_data(node.path, true)};
    ASSIGN_OR_RETURN(const auto made, m_client.ask(write, limit));
    const Answer& answer = made[0];
    if (answer.is_ok()) {
      return Done{};
    }
    if (answer.code != Code::bad_version && answer.code != Code::node_exists && answer.code != Code::no_node) {
      return error_of(answer.code, m_client.where());
    }
    const Instant until = m_clock.now() + std::chrono::microseconds(below(m_rng, longest_pause.count()));
    if (until >= limit.deadline) {
      return no_answer_in_time("no answer in time from " + m_client.where());
    }
    if (m_clock.sleep_until(until, limit.stop) == Wake::stopped) {
      return interrupted();
    }
  }
}

Result<Done> WatchingSource::add(std::span<const LockChannel> channels, const CallLimits& limit)
{
  for (const LockChannel& each : channels) {
    Node node{.lock = std::string(each.lock), .channel = std::string(each.channel), .path = {}};
    RETURN_IF_ERROR(make(node, limit));
    if (m_nodes.empty()) {
      m_session = m_client.session_number();
      m_connection = m_client.connection_number();
    }
    m_nodes.push_back(std::move(node));
  }
  return Done{};
}

bool WatchingSource::must_read(const std::string& path) const
{
  return is_connected_anew() || m_shared->changed.contains(path);
}

bool WatchingSource::must_read_any() const
{
  return std::ranges::any_of(m_nodes, [&](const Node& node) { return must_read(node.path); }) ||
         std::ranges::any_of(m_foreign, [&](const Foreign& node) { return must_read(node.path); });
}

bool WatchingSource::tell_when_gone(const std::string& path, const Message& message, const CallLimits& limit)
{
  if (std::ranges::find(m_nodes, message.channel, &Node::channel) == m_nodes.end()) {
    return false;
  }
  const auto known = std::ranges::find(m_foreign, path, &Foreign::path);
  if (known != m_foreign.end() && known->at_end.channel == message.channel && !is_connected_anew()) {
    return true;
  }
  std::erase_if(m_foreign, [&](const Foreign& each) { return each.at_end.channel == message.channel; });
  const auto answer = m_client.ask(exists(path, true), limit);
  if (answer && answer->code == Code::no_node) {
    m_heard.push_back(message);
  } else if (answer && answer->is_ok()) {
    m_foreign.push_back({.path = path, .at_end = message});
  }
  return answer && (answer->is_ok() || answer->code == Code::no_node);
}

// Keeps the events that have come, of all listeners.
Result<Done> WatchingSource::take_events(const CallLimits& limit)
{
  for (CallLimits next = limit;; next.deadline = m_clock.now()) {
    ASSIGN_OR_RETURN(const auto event, m_client.next_event(next));
    if (!event) {
      return Done{};
    }
    m_shared->changed.insert(event->path);
  }
}

Result<Done> WatchingSource::take_news(Node& node, const Answer& answer)
{
  if (answer.code == Code::no_node) {
    return Error{ErrorCode::unreachable, "the session with " + m_client.where() + " has ended"};
  }
  if (!answer.is_ok()) {
    return error_of(answer.code, m_client.where());
  }
  const Inbox inbox = inbox_of(answer.data);
  const std::int64_t first = inbox.last - static_cast<std::int64_t>(inbox.texts.size()) + 1;
  for (std::int64_t number = std::max(first, node.last + 1); number <= inbox.last; ++number) {
    m_heard.push_back({node.channel, inbox.texts[static_cast<std::size_t>(number - first)]});
  }
  node.last = std::max(node.last, inbox.last);
  return Done{};
}

// Reads and watches the nodes again that have changed; all, if the connection is another one.
Result<Done> WatchingSource::read_changed(const CallLimits& limit)
{
  std::vector<Operation> questions;
  std::vector<Node*> asked;
  std::vector<Foreign> foreign;
  for (Node& node : m_nodes) {
    if (must_read(node.path)) {
      questions.push_back(get_data(node.path, true));
      asked.push_back(&node);
    }
  }
  for (const Foreign& node : m_foreign) {
    if (must_read(node.path)) {
      questions.push_back(exists(node.path, true));
      foreign.push_back(node);
    }
  }
  if (questions.empty()) {
    return Done{};
  }
  for (const Node* const node : asked) {
    m_shared->changed.erase(node->path);
  }
  for (const Foreign& node : foreign) {
    m_shared->changed.erase(node.path);
  }
  ASSIGN_OR_RETURN(const auto answers, m_client.ask(questions, limit));
  for (std::size_t i = 0; i < asked.size(); ++i) {
    RETURN_IF_ERROR(take_news(*asked[i], answers[i]));
  }
  for (std::size_t i = 0; i < foreign.size(); ++i) {
    if (answers[asked.size() + i].code == Code::no_node) {
      m_heard.push_back(foreign[i].at_end);
      std::erase_if(m_foreign, [&](const Foreign& each) { return each.path == foreign[i].path; });
    }
  }
  m_connection = m_client.connection_number();
  return Done{};
}

Result<std::optional<Message>> WatchingSource::next(const CallLimits& limit)
{
  while (m_heard.empty()) {
    if (m_client.session_number() != m_session) {
      return Error{ErrorCode::unreachable, "the session with " + m_client.where() + " has ended"};
    }
    if (!must_read_any() && m_client.fd() >= 0) {
      if (const auto taken = take_events(limit); !taken && taken.error().code == ErrorCode::interrupted) {
        return taken.error();
      }
    }
    // An answer must be waited for, also where the caller only looks.
    const CallLimits reading{.deadline = std::max(limit.deadline, m_clock.now() + longest_reading), .stop = limit.stop};
    if (m_client.fd() < 0 || must_read_any()) {
      if (m_client.fd() < 0) {
        m_connection = 0;
      }
      RETURN_IF_ERROR(read_changed(reading));
    } else if (m_clock.now() >= limit.deadline) {
      return std::optional<Message>();
    }
    if (m_heard.empty() && m_clock.now() >= limit.deadline) {
      return std::optional<Message>();
    }
  }
  Message message = std::move(m_heard.front());
  m_heard.pop_front();
  return std::optional(std::move(message));
}

int WatchingSource::fd() const
{
  const bool has_work = !m_heard.empty() || m_client.fd() < 0 || m_client.has_event() || must_read_any();
  return has_work ? m_readable.get() : m_client.fd();
}

}  // namespace rlock::zookeeper
