// SPDX-License-Identifier: Apache-2.0
#include "support/memory_backend.h"

#include "base/fd.h"
#include "base/wait.h"
#include "engine/record_host.h"
#include "engine/script_store.h"
#include "stores/open.h"

#include <algorithm>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <vector>

#include <fnmatch.h>
#include <sys/eventfd.h>

namespace rlock::test {
namespace {

using record::Backend;
using record::Change;
using record::Commit;
using record::Committed;
using record::Conflict;
using record::Snapshot;
using record::Version;

constexpr std::string_view scheme = "records";
constexpr std::string_view session_scheme = "record-sessions";

// A session gets no less and no more than this, and is a little longer than what was asked for, as ZooKeeper rounds to its ticks.
constexpr Millis shortest_session{100};
constexpr Millis longest_session{6000};
constexpr Millis session_step{50};

struct Row {
  std::uint64_t version = 0;
  std::string bytes;
  std::string holder;
  std::map<std::int64_t, std::string> events;
};

class MemorySource;

struct MemoryTable {
  std::mutex mutex;
  std::map<std::string, Row> rows;
  std::uint64_t last_version = 0;
  std::set<MemorySource*> sources;
  struct Session {
    Instant ends;
    Millis length;
  };
  std::map<record::PresenceId, Session> sessions;
  std::uint64_t last_session = 0;
};

constexpr int members = 3;
constexpr int cut_off = 0;  // the member that the others do not hear

class MemorySource final : public MessageSource {
 public:
  MemorySource(MemoryTable& table, const Clock& clock)
      : m_table(table), m_clock(clock), m_event(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK))
  {
    const std::lock_guard guard(m_table.mutex);
    m_table.sources.insert(this);
  }
  ~MemorySource() override
  {
    const std::lock_guard guard(m_table.mutex);
    m_table.sources.erase(this);
  }
  MemorySource(const MemorySource&) = delete;
  MemorySource& operator=(const MemorySource&) = delete;

  Result<Done> add(std::span<const LockChannel> added, const CallLimits&) override
  {
    const std::lock_guard guard(m_table.mutex);
    for (const LockChannel& channel : added) {
      channels.emplace(channel.lock, channel.channel);
      m_table.rows[std::string(channel.lock)].version = ++m_table.last_version;
    }
    return Done{};
  }
  Result<std::optional<Message>> next(const CallLimits& limit) override
  {
    if (wait_for(m_event.get(), POLLIN, m_clock, limit) != Waited::ready) {
      return std::optional<Message>{};
    }
    const std::lock_guard guard(m_table.mutex);
    if (messages.empty()) {
      eventfd_t count = 0;
      ::eventfd_read(m_event.get(), &count);
      return std::optional<Message>{};
    }
    Message first = std::move(messages.front());
    messages.pop_front();
    return std::optional(std::move(first));
  }
  [[nodiscard]] int fd() const override { return m_event.get(); }
  void tell(const Message& message)
  {
    messages.push_back(message);
    ::eventfd_write(m_event.get(), 1);
  }

  std::set<std::pair<std::string, std::string>> channels;  // lock, channel
  std::deque<Message> messages;

 private:
  MemoryTable& m_table;
  const Clock& m_clock;
  Fd m_event;
};

// What the majority knows. The mutex of the table is held.
class MemoryPresences final : public record::Presences {
 public:
  MemoryPresences(MemoryTable& table, const Clock& clock) : m_table(table), m_clock(clock) {}

  Result<record::Presence> make(Millis lease, record::Keeping, const CallLimits&) override
  {
    const std::lock_guard guard(m_table.mutex);
    const Millis length =
        std::clamp((lease + session_step - Millis{1}) / session_step * session_step, shortest_session, longest_session);
    const std::string id = "session " + std::to_string(++m_table.last_session);
    const Instant from = m_clock.now();
    m_table.sessions[id] = {.ends = from + length, .length = length};
    return record::Presence{.id = id, .lease = LeaseTerm{.from = from, .length = length}};
  }

  // The member that is cut off answers the keep-alive, but not the read after it, so the next member is asked.
  Result<record::Proof> prove(const record::PresenceId& id, const CallLimits&) override
  {
    if (m_member == cut_off) {
      m_member = (m_member + 1) % members;
    }
    const std::lock_guard guard(m_table.mutex);
    end_expired();
    const Instant from = m_clock.now();
    const auto session = m_table.sessions.find(id);
    m_member = (m_member + 1) % members;  // the next renewal is another member's
    if (session == m_table.sessions.end()) {
      return record::Proof{record::NoLonger{}};
    }
    session->second.ends = from + session->second.length;
    return record::Proof{LeaseTerm{.from = from, .length = session->second.length}};
  }

  Result<std::vector<record::PresenceId>> gone(std::span<const record::PresenceId> ids, const CallLimits&) override
  {
    const std::lock_guard guard(m_table.mutex);
    end_expired();
    std::vector<record::PresenceId> over;
    std::ranges::copy_if(ids, std::back_inserter(over),
                         [this](const auto& id) { return !m_table.sessions.contains(id); });
    return over;
  }

  Result<Done> remove(const record::PresenceId& id, const CallLimits&) override
  {
    const std::lock_guard guard(m_table.mutex);
    m_table.sessions.erase(id);
    return Done{};
  }

  // The mutex is held.
  [[nodiscard]] bool exists(const record::PresenceId& id)
  {
    end_expired();
    return m_table.sessions.contains(id);
  }

 private:
  void end_expired()
  {
    std::erase_if(m_table.sessions, [now = m_clock.now()](const auto& each) { return each.second.ends <= now; });
  }

  MemoryTable& m_table;
  const Clock& m_clock;
  int m_member = cut_off;
};

class MemoryBackend final : public Backend {
 public:
  MemoryBackend(MemoryTable& table, const Clock& clock) : m_table(table), m_clock(clock) {}
  // With presences.
  MemoryBackend(MemoryTable& table, const Clock& clock, std::int64_t wall_ahead_us)
      : m_table(table), m_clock(clock), m_wall_ahead_us(wall_ahead_us)
  {
    m_presences.emplace(table, clock);
  }
  record::Presences* presences() override { return m_presences ? &*m_presences : nullptr; }

  Result<Snapshot> read(std::string_view name, const CallLimits&) override
  {
    const std::lock_guard guard(m_table.mutex);
    Snapshot state{.version = {}, .bytes = {}, .time_at = m_clock.now(), .listeners = {}};
    state.time_us = wall_clock_ms() * 1000 + m_wall_ahead_us;
    if (const auto row = m_table.rows.find(std::string(name)); row != m_table.rows.end()) {
      state.version = std::to_string(row->second.version);
      state.bytes = row->second.bytes;
    }
    for (const MemorySource* source : m_table.sources) {
      for (const auto& [lock, channel] : source->channels) {
        if (lock == name) {
          state.listeners.push_back(channel);
        }
      }
    }
    std::ranges::sort(state.listeners);
    return state;
  }

  Result<record::StatesAndLogs> read_each(std::span<const std::string_view> names, bool with_logs,
                                          const CallLimits& limit) override
  {
    record::StatesAndLogs states;
    for (const std::string_view name : names) {
      auto& known = states[std::string(name)];
      known.state = *read(name, limit);
      known.log = with_logs ? std::optional(*events(name, limit)) : std::nullopt;
    }
    return states;
  }

  Result<Commit> write_if(std::string_view name, const Version& version, const Change& change,
                          const CallLimits&) override
  {
    const std::lock_guard guard(m_table.mutex);
    const auto found = m_table.rows.find(std::string(name));
    const std::string present = found == m_table.rows.end() ? "" : std::to_string(found->second.version);
    if (present != version) {
      return Commit{Conflict{}};
    }
    if (std::ranges::any_of(change.needed, [this](const auto& id) { return !m_presences->exists(id); })) {
      return Commit{record::PresenceGone{}};
    }
    Row& row = m_table.rows[std::string(name)];
    row.version = ++m_table.last_version;
    row.bytes = change.bytes;
    row.holder = change.face.holder;
    if (change.log.first_kept) {
      row.events.erase(row.events.begin(), row.events.lower_bound(*change.log.first_kept));
    }
    if (change.log.last_kept) {
      row.events.erase(row.events.upper_bound(*change.log.last_kept), row.events.end());
    }
    for (const record::LoggedEvent& event : change.log.written) {
      row.events[event.id] = event.entry;
    }
    for (const Message& message : change.messages) {
      for (MemorySource* source : m_table.sources) {
        if (source->channels.contains({std::string(name), message.channel})) {
          source->tell(message);
        }
      }
    }
    return Commit{Committed{std::to_string(row.version)}};
  }

  Result<std::unique_ptr<MessageSource>> listen(std::span<const LockChannel> channels, const CallLimits& limit) override
  {
    auto source = std::make_unique<MemorySource>(m_table, m_clock);
    if (const auto added = source->add(channels, limit); !added) {
      return added.error();
    }
    return std::unique_ptr<MessageSource>(std::move(source));
  }

  Result<std::vector<std::string>> events(std::string_view name, const CallLimits&) override
  {
    const std::lock_guard guard(m_table.mutex);
    std::vector<std::string> entries;
    for (const auto& [id, entry] : m_table.rows[std::string(name)].events) {
      entries.push_back(entry);
    }
    return entries;
  }

  Result<std::vector<std::string>> list(std::string_view glob, Which which, const CallLimits&) override
  {
    const std::lock_guard guard(m_table.mutex);
    std::vector<std::string> names;
    for (const auto& [name, row] : m_table.rows) {
      const bool counts = which == Which::held ? !row.holder.empty() : !row.events.empty();
      if (counts && ::fnmatch(std::string(glob).c_str(), name.c_str(), 0) == 0) {
        names.push_back(name);
      }
    }
    return names;
  }

  void drop_connection() override {}

 private:
  MemoryTable& m_table;
  const Clock& m_clock;
  std::int64_t m_wall_ahead_us = 0;
  std::optional<MemoryPresences> m_presences;
};

MemoryTable& table_called(const std::string& name)
{
  static std::map<std::string, MemoryTable> tables;
  return tables[name];
}

Result<Endpoint> parse_records(std::string_view url)
{
  Endpoint endpoint;
  endpoint.scheme = url.substr(0, url.find(':'));
  endpoint.kind = Endpoint::Kind::other;
  endpoint.path = url.substr(endpoint.scheme.size() + 1);
  return endpoint;
}

Result<std::unique_ptr<LockStore>> open_records(const ServerSpec&, const Endpoint& endpoint, const Clock& clock,
                                                StopToken)
{
  auto backend =
      endpoint.scheme == session_scheme ? session_backend(endpoint.path, clock) : memory_backend(endpoint.path, clock);
  auto host = std::make_unique<record::RecordHost>(std::move(backend), clock, std::make_unique<SystemRng>());
  return std::unique_ptr<LockStore>(std::make_unique<ScriptStore>(std::move(host), clock));
}

}  // namespace

void add_record_engine()
{
  static const bool once = [] {
    for (const std::string_view each : {scheme, session_scheme}) {
      add_engine({.name = each, .parse = parse_records, .open = open_records});
    }
    return true;
  }();
  static_cast<void>(once);
}

std::unique_ptr<Backend> memory_backend(const std::string& name, const Clock& clock)
{
  return std::make_unique<MemoryBackend>(table_called(name), clock);
}

std::unique_ptr<Backend> session_backend(const std::string& name, const Clock& clock, std::int64_t wall_ahead_us)
{
  return std::make_unique<MemoryBackend>(table_called("with sessions: " + name), clock, wall_ahead_us);
}

std::size_t presences_in(const std::string& name, const Clock& clock)
{
  MemoryTable& table = table_called("with sessions: " + name);
  const std::lock_guard guard(table.mutex);
  return static_cast<std::size_t>(
      std::ranges::count_if(table.sessions, [now = clock.now()](const auto& each) { return each.second.ends > now; }));
}

}  // namespace rlock::test
