// SPDX-License-Identifier: Apache-2.0
#include "stores/zookeeper/zookeeper_backend.h"

#include <unistd.h>
#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>
#include "base/text.h"
#include "engine/cleaning.h"
#include "engine/name_glob.h"
#include "stores/zookeeper/zookeeper_checks.h"
#include "stores/zookeeper/zookeeper_cleaning.h"
#include "stores/zookeeper/zookeeper_client.h"
#include "stores/zookeeper/zookeeper_layout.h"
#include "stores/zookeeper/zookeeper_listener.h"
#include "stores/zookeeper/zookeeper_log.h"
#include "stores/zookeeper/zookeeper_native_line.h"
#include "stores/zookeeper/zookeeper_presences.h"

namespace rlock::zookeeper {
namespace {

using record::Change;
using record::Commit;
using record::Committed;
using record::Conflict;
using record::PresenceGone;
using record::Snapshot;
using record::Version;

// A version of a record: that of its node, and that of the node `deletions`.
struct Versions {
  std::int32_t record = 0;
  std::int32_t deletions = 0;
};

Version text_of(const Versions& versions)
{
  return std::to_string(versions.record) + "." + std::to_string(versions.deletions);
}

Versions versions_of(const Version& text)
{
  Versions versions;
  const auto dot = text.find('.');
  std::from_chars(text.data(), text.data() + dot, versions.record);
  std::from_chars(text.data() + dot + 1, text.data() + text.size(), versions.deletions);
  return versions;
}

// The parts of a commit, and which of them are what.
struct Parts {
  std::vector<Operation> operations;
  std::size_t events_at = 0;
  std::size_t needed_at = 0;
};

// The first part that failed.
std::size_t failed_part(const Answer& answer)
{
  const auto found = std::ranges::find_if(answer.parts, [](const Answer& part) { return !part.is_ok(); });
  return static_cast<std::size_t>(found - answer.parts.begin());
}

std::span<const Answer> first(const std::vector<Answer>& answers, std::size_t most)
{
  return std::span(answers).first(std::min(most, answers.size()));
}

class ZookeeperBackend final : public record::Backend {
 public:
  ZookeeperBackend(ConnectionSpec spec, const Clock& clock, std::unique_ptr<Rng> rng)
      : m_layout(spec.chroot),
        m_is_private(!spec.user.empty()),
        m_rng(std::move(rng)),
        m_shared(std::make_shared<SharedClient>(SharedClient{
            .client = std::make_shared<Client>(std::move(spec), default_ttl, clock, std::make_unique<SystemRng>()),
            .changed = {}})),
        m_client(*m_shared->client),
        m_presences(*m_shared, m_layout, clock),
        m_lines{NativeNodes(NativeFormat::curator, *m_shared, m_client.spec().chroot),
                NativeNodes(NativeFormat::kazoo, *m_shared, m_client.spec().chroot),
                NativeNodes(curator_read_write, *m_shared, m_client.spec().chroot)},
        m_clock(clock),
        m_process(::getpid())
  {
  }
  // A session without a presence is of no use to anybody.
  ~ZookeeperBackend() override
  {
    if (m_process == ::getpid() && !m_shared->has_listeners() && !m_presences.shares_session()) {
      m_client.close_ahead();
    }
  }
  ZookeeperBackend(const ZookeeperBackend&) = delete;
  ZookeeperBackend& operator=(const ZookeeperBackend&) = delete;

  Result<Snapshot> read(std::string_view name, const CallLimits& limit) override
  {
    const std::string path = m_layout.record(name);
    const std::string line = line_path(m_client.spec().chroot, name);
    const std::array questions{sync(path), exists(m_layout.deletions(), false), get_data(path, false),
                               get_children(path), exists(is_path(line) ? line : path, false)};
    constexpr std::size_t own = 4;  // those about rlock's own nodes
    auto answers = ask_tree(questions, limit, own);
    if (answers && (*answers)[1].code == Code::no_node) {  // an operator has deleted all nodes
      m_knows_tree = false;
      answers = ask_tree(questions, limit, own);
    }
    if (!answers) {
      return answers.error();
    }
    m_deletions = (*answers)[1].stat.version;
    m_presences.note_read();
    auto state = state_in(name, (*answers)[2], (*answers)[3]);
    if (state) {
      state->has_line = is_path(line) && (*answers)[own].stat.children > 0;
    }
    return state;
  }

  Result<record::StatesAndLogs> read_each(std::span<const std::string_view> names, bool with_logs,
                                          const CallLimits& limit) override
  {
    std::vector<Operation> questions{sync(m_layout.locks()), exists(m_layout.deletions(), false)};
    const std::size_t first = questions.size();
    for (const std::string_view name : names) {
      questions.push_back(get_data(m_layout.record(name), false));
      questions.push_back(get_children(m_layout.record(name)));
    }
    ASSIGN_OR_RETURN(const auto answers, ask_tree(questions, limit));
    record::StatesAndLogs states;
    if (answers[1].code == Code::no_node) {
      return states;
    }
    m_deletions = answers[1].stat.version;
    m_presences.note_read();
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (auto state = state_in(names[i], answers[first + 2 * i], answers[first + 2 * i + 1])) {
        states[std::string(names[i])].state = *std::move(state);
      }
    }
    ASSIGN_OR_RETURN(auto logs, with_logs ? m_log.read_each(names, limit) : std::vector<std::vector<std::string>>());
    for (std::size_t i = 0; i < logs.size(); ++i) {
      if (const auto known = states.find(names[i]); known != states.end()) {
        known->second.log = std::move(logs[i]);
      }
    }
    return states;
  }

  Result<Commit> write_if(std::string_view name, const Version& version, const Change& change,
                          const CallLimits& limit) override
  {
    ASSIGN_OR_RETURN(const auto inboxes, inboxes_for(name, change.messages, limit));
    bool knows_log = change.log.first_kept || change.log.last_kept;
    for (int tries = 0;; ++tries) {
      ASSIGN_OR_RETURN(auto parts, parts_of(name, version, change, knows_log, limit));
      RETURN_IF_ERROR(add_line(name, change, parts, limit));
      parts.operations.insert(parts.operations.end(), inboxes.begin(), inboxes.end());
      const Operation commit = multi(parts.operations);
      const auto answer = has_stand(change) ? m_presences.ask_as(change.line->stand->presence, commit, limit)
                                            : m_client.ask(commit, limit);
      if (!answer) {
        const bool is_too_long = answer.error().code == ErrorCode::config;
        return is_too_long ? Commit{record::TooLarge{answer.error()}} : Result<Commit>(answer.error());
      }
      if (answer->is_ok()) {
        for (const record::PresenceId& id : change.needed) {
          m_presences.note_made(id);
        }
        if (record::must_clean(*m_rng, change)) {
          delete_useless_records(m_client, m_layout, *m_rng, limit);
        }
        const auto deletions = version.empty() ? m_deletions : versions_of(version).deletions;
        return Commit{Committed{text_of({.record = answer->parts.at(1).stat.version, .deletions = deletions})}};
      }
      const std::size_t failed = failed_part(*answer);
      const bool is_of_log = failed >= parts.events_at && failed < parts.needed_at;
      if (is_of_log && tries < most_tries && (answer->code == Code::node_exists || answer->code == Code::no_node)) {
        knows_log = true;
        continue;
      }
      return refused(*answer, failed, parts, change);
    }
  }

  Result<std::unique_ptr<MessageSource>> listen(std::span<const LockChannel> channels, const CallLimits& limit) override
  {
    RETURN_IF_ERROR(m_knows_tree ? Result(Done{}) : make_tree(limit));
    auto source = std::make_unique<WatchingSource>(m_shared, m_layout, m_clock);
    const auto listening = source->add(channels, limit);
    return listening ? Result<std::unique_ptr<MessageSource>>(std::move(source)) : listening.error();
  }

  Result<std::vector<std::string>> events(std::string_view name, const CallLimits& limit) override
  {
    auto logs = m_log.read_each({&name, 1}, limit);
    return logs ? Result(std::move(logs->front())) : logs.error();
  }

  Result<std::vector<std::string>> list(std::string_view glob, Which which, const CallLimits& limit) override
  {
    const std::string parent = which == Which::held ? m_layout.locks() : m_layout.all_events();
    const std::array questions{sync(parent), get_children(parent)};
    ASSIGN_OR_RETURN(const auto found, ask_tree(questions, limit));
    std::vector<std::string> names;
    for (const std::string& child : found[1].children) {
      auto name = text_of_node(child);
      if (name) {
        names.push_back(*std::move(name));
      }
    }
    record::keep_matching(names, glob);
    std::ranges::sort(names);
    return which == Which::held ? held_of(names, limit) : names;
  }

  Result<Done> erase(std::string_view name, const CallLimits& limit) override
  {
    return erase_lock(m_client, m_layout, name, limit);
  }

  Result<std::vector<Finding>> check_server(const CallLimits& limit) override
  {
    return zookeeper::check_server(m_client, m_clock, limit);
  }
  record::Presences* presences() override { return &m_presences; }
  std::vector<record::NativeLine*> native_lines() override
  {
    std::vector<record::NativeLine*> lines;
    std::ranges::transform(m_lines, std::back_inserter(lines), [](NativeNodes& each) { return &each; });
    return lines;
  }
  void drop_connection() override { m_client.drop(); }
  [[nodiscard]] std::size_t members() const override { return m_client.spec().members.size(); }

 private:
  struct Listener {
    std::string channel;
    std::string path;
  };
  static constexpr int most_tries = 3;

  // Makes what is missing of the chroot and of the directories.
  Result<Done> make_tree(const CallLimits& limit)
  {
    std::vector<Operation> creations;
    for (const std::string& path : m_layout.directories()) {
      creations.push_back(create(path, {}, CreateMode::persistent, m_is_private && path.starts_with(m_layout.root())));
    }
    ASSIGN_OR_RETURN(const auto answers, m_client.ask(creations, limit));
    for (const Answer& each : answers) {
      if (!each.is_ok() && each.code != Code::node_exists) {
        return error_of(each.code, m_client.where());
      }
    }
    m_knows_tree = true;
    return Done{};
  }

  // Asks; if a node is missing, makes the directories and asks again. The first `own` questions count.
  Result<std::vector<Answer>> ask_tree(std::span<const Operation> questions, const CallLimits& limit,
                                       std::size_t own = std::numeric_limits<std::size_t>::max())
  {
    auto answers = m_client.ask(questions, limit);
    if (answers && !m_knows_tree &&
        std::ranges::any_of(first(*answers, own), [](const Answer& each) { return each.code == Code::no_node; })) {
      RETURN_IF_ERROR(make_tree(limit));
      answers = m_client.ask(questions, limit);
    }
    if (!answers) {
      return answers;
    }
    for (const Answer& each : first(*answers, own)) {
      if (!each.is_ok() && each.code != Code::no_node) {
        return error_of(each.code, m_client.where());
      }
    }
    m_knows_tree = true;
    return answers;
  }

  // Of the answers about the node of the record.
  Result<Snapshot> state_in(std::string_view name, const Answer& record, const Answer& children)
  {
    note_listeners(name, children.children);
    Snapshot state{.version = {}, .bytes = {}, .time_at = m_clock.now(), .listeners = {}};
    state.time_us = wall_clock_ms() * 1000;
    if (record.code == Code::no_node || children.code == Code::no_node) {
      return state;  // or it was deleted between the two: a commit that creates it is refused if it is there again
    }
    const auto data = record_data(record.data);
    if (!data) {
      return Error{ErrorCode::config, "the node " + printable(m_layout.record(name)) + " on " + m_client.where() +
                                          " has no record of a lock that this rlock knows"};
    }
    state.version = text_of({.record = record.stat.version, .deletions = m_deletions});
    state.bytes = data->bytes;
    for (const Listener& each : m_listeners) {
      state.listeners.push_back(each.channel);
    }
    std::ranges::sort(state.listeners);
    return state;
  }

  void note_listeners(std::string_view name, const std::vector<std::string>& children)
  {
    m_listeners_of = name;
    m_listeners.clear();
    for (const std::string& child : children) {
      if (auto channel = channel_of_listener(child, name)) {
        m_listeners.push_back({.channel = *std::move(channel), .path = m_layout.record(name) + "/" + child});
      }
    }
  }

  // The parts that put the messages into the inboxes of the listeners. Whoever has begun to listen since the read has changed the version.
  Result<std::vector<Operation>> inboxes_for(std::string_view name, std::span<const Message> messages,
                                             const CallLimits& limit)
  {
    if (!messages.empty() && m_listeners_of != name) {
      ASSIGN_OR_RETURN(const auto found, m_client.ask(get_children(m_layout.record(name)), limit));
      note_listeners(name, found.children);
    }
    std::vector<Operation> reads;
    std::vector<const Listener*> to;
    for (const Listener& each : m_listeners) {
      const bool gets_one =
          std::ranges::any_of(messages, [&](const Message& message) { return message.channel == each.channel; });
      if (gets_one) {
        reads.push_back(get_data(each.path, false));
        to.push_back(&each);
      }
    }
    if (reads.empty()) {
      return std::vector<Operation>();
    }
    ASSIGN_OR_RETURN(const auto answers, m_client.ask(reads, limit));
    std::vector<Operation> parts;
    for (std::size_t i = 0; i < to.size(); ++i) {
      const Answer& old = answers[i];
      if (!old.is_ok()) {
        continue;  // the listener is gone
      }
      Inbox inbox = inbox_of(old.data);
      for (const Message& message : messages) {
        if (message.channel == to[i]->channel) {
          inbox.texts.push_back(message.text);
          ++inbox.last;
        }
      }
      if (inbox.texts.size() > longest_inbox) {
        inbox.texts.erase(inbox.texts.begin(), inbox.texts.end() - longest_inbox);
      }
      parts.push_back(set_data(to[i]->path, encoded(inbox), old.stat.version));
    }
    return parts;
  }

  // `knows_log`: asks which entries are there.
  Result<Parts> parts_of(std::string_view name, const Version& version, const Change& change, bool knows_log,
                         const CallLimits& limit)
  {
    const std::string path = m_layout.record(name);
    const std::string data = encoded(change.bytes, change.face);
    Parts parts;
    const Versions old = version.empty() ? Versions{.record = 0, .deletions = m_deletions} : versions_of(version);
    parts.operations = {
        check(m_layout.deletions(), old.deletions),
        version.empty() ? create(path, data, CreateMode::persistent, m_is_private) : set_data(path, data, old.record)};
    parts.events_at = parts.operations.size();
    RETURN_IF_ERROR(m_log.add_to(parts.operations, name, change.log, knows_log, limit));
    parts.needed_at = parts.operations.size();
    for (const record::PresenceId& id : change.needed) {
      parts.operations.push_back(m_presences.creation_or_check(id));
    }
    for (const record::PresenceId& id : change.ended) {
      const auto proof = m_presences.absent(id);
      parts.operations.insert(parts.operations.end(), proof.begin(), proof.end());
    }
    return parts;
  }

  static bool has_stand(const Change& change) { return change.line != nullptr && change.line->stand; }

  Result<Done> add_line(std::string_view name, const Change& change, Parts& parts, const CallLimits& limit)
  {
    const auto line = std::ranges::find(m_lines, change.line != nullptr ? change.line->format : record::no_line,
                                        &NativeNodes::format);
    if (line == m_lines.end()) {
      return Done{};
    }
    ASSIGN_OR_RETURN(const auto added, line->change(name, *change.line, limit));
    parts.operations.insert(parts.operations.end(), added.begin(), added.end());
    return Done{};
  }

  Result<Commit> refused(const Answer& answer, std::size_t failed, const Parts& parts, const Change& change)
  {
    const bool is_change =
        answer.code == Code::bad_version || answer.code == Code::no_node || answer.code == Code::node_exists;
    if (!is_change) {
      return error_of(answer.code, m_client.where());
    }
    const bool is_presence = failed >= parts.needed_at && failed < parts.needed_at + change.needed.size();
    if (is_presence && answer.code == Code::node_exists) {  // the answer to the commit that made it was lost
      m_presences.note_made(change.needed[failed - parts.needed_at]);
    } else if (is_presence && answer.code == Code::no_node) {
      m_presences.note_gone(change.needed[failed - parts.needed_at]);
      return Commit{PresenceGone{}};
    }
    return Commit{Conflict{}};
  }

  Result<std::vector<std::string>> held_of(const std::vector<std::string>& names, const CallLimits& limit)
  {
    std::vector<Operation> reads;
    reads.reserve(names.size());
    for (const std::string& name : names) {
      reads.push_back(get_data(m_layout.record(name), false));
    }
    std::vector<std::string> held;
    if (reads.empty()) {
      return held;
    }
    ASSIGN_OR_RETURN(const auto answers, m_client.ask(reads, limit));
    for (std::size_t i = 0; i < names.size(); ++i) {
      const auto data = answers[i].is_ok() ? record_data(answers[i].data) : std::nullopt;
      if (data && !data->face.holder.empty()) {
        held.push_back(names[i]);
      }
    }
    return held;
  }

  const Layout m_layout;
  const bool m_is_private;
  const std::unique_ptr<Rng> m_rng;
  std::shared_ptr<SharedClient> m_shared;
  Client& m_client;
  NodePresences m_presences;
  std::array<NativeNodes, 3> m_lines;
  EventNodes m_log{m_client, m_layout, m_is_private};
  const Clock& m_clock;
  const pid_t m_process;
  bool m_knows_tree = false;
  std::int32_t m_deletions = 0;       // at the last read
  std::string m_listeners_of;         // the lock of the last read
  std::vector<Listener> m_listeners;  // of that lock
};

}  // namespace

std::unique_ptr<record::Backend> open_backend(ConnectionSpec spec, const Clock& clock, std::unique_ptr<Rng> rng)
{
  return std::make_unique<ZookeeperBackend>(std::move(spec), clock, std::move(rng));
}

}  // namespace rlock::zookeeper
