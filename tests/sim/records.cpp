// SPDX-License-Identifier: Apache-2.0
#include "sim/records.h"

#include "engine/bound_owners.h"
#include "engine/record_codec.h"
#include "engine/record_host.h"
#include "engine/script_store.h"
#include "sim/presences.h"
#include "stores/open.h"

#include <algorithm>

namespace rlock::sim {

namespace {

using record::Change;
using record::Commit;
using record::Committed;
using record::Conflict;
using record::Snapshot;

Records* the_records = nullptr;

}  // namespace

Records::Records(World& world, Network& network, Server& server, const Schedule& schedule, RecordMistake mistake)
    : m_world(world), m_network(network), m_server(server), m_rng(schedule.seed * 613 + 7), m_mistake(mistake)
{
  the_records = this;
  m_network.on_cut = [this](int client) { cut_connections(client); };
  m_network.on_death = [this](const Process& process) { process_died(process); };
  m_server.redis().on_publish = nullptr;  // the engine delivers
  m_server.redis().count_subscribers = [this](const std::string& channel) {
    const auto now = listeners();
    return std::ranges::count(now, channel) > 0 || std::ranges::count(m_listened_at_read, channel) > 0 ? 1 : 0;
  };
  if (schedule.store == StoreKind::sessions) {
    m_members.emplace(world, schedule.seed);
    m_network.on_start = [this] { m_members->all_started(); };
    m_server.follow_sessions({.lasts_for = [this](const auto& id) { return m_members->lasts_for(id); },
                              .data_lost = [this] { m_members->lose_sessions(); }});
    for (const ClientPlan& plan : schedule.clients) {
      step_wall_clock(plan.number, plan.wall_ahead);
    }
  }
}

Records::~Records()
{
  m_server.follow_sessions({});
  the_records = nullptr;
}

std::int64_t Records::wall_clock_us(int client) const
{
  const auto number = static_cast<std::size_t>(client);
  return (Server::epoch + m_world.now() + (number < m_wall_ahead.size() ? m_wall_ahead[number] : 0)) / 1000;
}

void Records::step_wall_clock(int client, Millis by)
{
  const auto number = static_cast<std::size_t>(client);
  m_wall_ahead.resize(std::max(m_wall_ahead.size(), number + 1));
  m_wall_ahead[number] += nanos(by);
}

Records& Records::current() { return *the_records; }

Records::Connection Records::connect()
{
  const Process& process = Fiber::running()->process;
  auto connection =
      std::make_shared<RecordConnection>(RecordConnection{.owner = &process,
                                                          .client = process.client,
                                                          .member = m_members ? m_members->any() : 0,
                                                          .event = Fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK))});
  m_connections.push_back(connection);
  return connection;
}

// The store learns of the end in the order of the requests. The end of a connection that lost something is found by keep-alive.
void Records::close(const Connection& connection)
{
  if (connection->is_closed) {
    return;
  }
  constexpr Nanos keep_alive = 5'000'000'000;
  connection->is_closed = true;
  connection->last_arrival =
      std::max(connection->last_arrival + 1, m_world.now() + m_network.latency(connection->client));
  m_world.at(connection->last_arrival + (connection->requests_lost ? keep_alive : 0), [this, connection] {
    connection->is_cut = true;
    std::erase(m_connections, connection);
  });
}

void Records::process_died(const Process& process)
{
  for (const Connection& connection : std::vector(m_connections)) {
    if (connection->owner == &process) {
      close(connection);
    }
  }
}

void Records::cut_connections(int client)
{
  if (m_members && client < 0) {
    m_members->all_stopped();
  }
  std::erase_if(m_connections, [&](const Connection& connection) {
    const bool ends = client < 0 || connection->client == client;
    if (ends) {
      connection->is_cut = true;
      ::eventfd_write(connection->event.get(), 1);
    }
    return ends;
  });
}

bool Records::reach(Connection& connection)
{
  if (connection == nullptr || connection->is_cut || connection->is_closed) {
    connection = m_network.is_up() ? connect() : nullptr;
  }
  return connection != nullptr;
}

void Records::send(const Connection& connection, std::function<void()> arrive, ServedAt served_at)
{
  const Nanos now = m_world.now();
  connection->requests_lost =
      connection->requests_lost || now < m_network.link(connection->client).loses_requests_until;
  if (connection->requests_lost) {
    return;
  }
  if (!served_at) {
    served_at = [this, member = connection->member] {
      return m_members ? m_members->served_at(member) : std::optional(m_world.now());
    };
  }
  connection->last_arrival = std::max(connection->last_arrival + 1, now + m_network.latency(connection->client));
  m_world.at(connection->last_arrival, [this, connection, arrive = std::move(arrive), served_at] {
    if (!connection->is_cut) {
      serve(arrive, served_at);
    }
  });
}

// What has arrived at a member may be served after its client has given up.
void Records::serve(const std::function<void()>& arrive, const ServedAt& served_at)
{
  const auto when = m_network.is_up() ? served_at() : std::nullopt;
  if (when && *when <= m_world.now()) {
    arrive();
  } else if (when) {
    m_world.at(*when, [this, arrive, served_at] { serve(arrive, served_at); });
  }
}

void Records::deliver(const Connection& connection, std::function<void()> arrive, Nanos not_before)
{
  const Nanos now = m_world.now();
  connection->answers_lost = connection->answers_lost || now < m_network.link(connection->client).loses_answers_until;
  if (connection->answers_lost) {
    return;
  }
  connection->last_delivery =
      std::max(connection->last_delivery + 1, std::max(now, not_before) + m_network.latency(connection->client));
  m_world.at(connection->last_delivery, [connection, arrive = std::move(arrive)] {
    if (!connection->is_cut && !connection->is_closed) {
      arrive();
      ::eventfd_write(connection->event.get(), 1);
    }
  });
}

std::vector<std::string> Records::listeners() const
{
  std::vector<std::string> all;
  for (const Connection& connection : m_connections) {
    all.insert(all.end(), connection->channels.begin(), connection->channels.end());
  }
  std::ranges::sort(all);
  return all;
}

Snapshot Records::state()
{
  KeySpace& keys = m_server.redis();
  Snapshot read{.version = m_server.version(),
                .bytes = record::encode(m_server.record()),
                .time_us = keys.time(),
                .listeners = listeners()};
  if (m_mistake == RecordMistake::time_after_state) {
    read.time_us += m_rng.up_to(700'000);
  }
  return read;
}

void Records::deliver_messages(const std::vector<Message>& messages)
{
  for (const Message& message : messages) {
    for (const Connection& connection : m_connections) {
      if (std::ranges::count(connection->channels, message.channel) > 0) {
        deliver(
            connection, [connection, message] { connection->messages.push_back(message); },
            m_members ? m_members->speaks_at(connection->member) : 0);
      }
    }
  }
}

Commit Records::commit(const Commitment& wanted)
{
  if (wanted.version != m_server.version() && m_mistake != RecordMistake::no_comparison) {
    ++m_conflicts;
    return Conflict{};
  }
  const bool all_live =
      std::ranges::all_of(wanted.needed, [this](const auto& id) { return m_members->has_session(id); });
  if (!all_live) {
    return record::PresenceGone{};
  }
  auto record = record::decode(wanted.bytes);
  if (!record) {
    throw std::logic_error("a client wrote a record that cannot be read: " + record.error().text);
  }
  m_listened_at_read = wanted.read.listeners;
  m_server.set_rule_time(m_members ? record->time_us : wanted.read.time_us);
  if (wanted.version == m_server.version()) {
    // The rules compare with the state that was read. A later read of another client may have removed a key that has expired since.
    auto read = *record::decode(wanted.read.bytes);
    if (m_members) {
      record::end_gone(read, *LockName::parse("stock"), wanted.gone, record->time_us);
    }
    m_server.redis().replace(std::move(read.keys));
  }
  m_network.before_request(wanted.request);
  m_server.write_record(std::move(*record), wanted.log);
  std::ranges::for_each(wanted.needed, [this](const auto& id) { m_members->put(id); });
  if (m_mistake == RecordMistake::version_comes_back) {
    m_server.reuse_version();
  }
  if (m_mistake != RecordMistake::loses_messages) {
    deliver_messages(wanted.messages);
  }
  m_network.after_request(wanted.client, wanted.request, Reply::status("a commit"));
  m_server.set_rule_time(std::nullopt);
  m_listened_at_read.clear();
  return Committed{m_server.version()};
}

// A member may pass a commit on again when the leader has changed. Nobody gets the second answer.
Commit Records::commit_maybe_twice(const Commitment& wanted)
{
  if (m_members && m_rng.one_in(16)) {
    m_world.after(m_network.latency(wanted.client), [this, wanted] { commit(wanted); });
  }
  return commit(wanted);
}

void Records::begin_to_listen(const Connection& connection, const std::vector<std::string>& channels)
{
  connection->channels.insert(connection->channels.end(), channels.begin(), channels.end());
  m_server.change_version();
}

// The rules look at an answer when it is known, which for a commit is after its change.
void Records::note_answer(int client, const Words& request, const Reply& answer)
{
  if (!Fiber::running()->process.is_dead) {
    m_network.before_request(request);
    m_network.after_request(client, request, answer);
  }
}

class SimulatedSource final : public MessageSource {
 public:
  SimulatedSource(Records& records, const Clock& clock)
      : m_records(records), m_clock(clock), m_connection(records.connect())
  {
  }
  ~SimulatedSource() override
  {
    if (the_records == &m_records) {
      m_records.close(m_connection);
    }
  }
  SimulatedSource(const SimulatedSource&) = delete;
  SimulatedSource& operator=(const SimulatedSource&) = delete;

  Result<Done> listen(const std::vector<std::string>& channels, const CallLimits& limit)
  {
    const auto connection = m_connection;
    if (connection->is_cut || connection->is_closed) {
      return Records::no_answer();
    }
    const auto heard = m_records.ask<Done>(
        m_connection,
        [&records = m_records, connection, channels] {
          records.begin_to_listen(connection, channels);
          return Done{};
        },
        m_clock, limit);
    return heard;
  }
  Result<Done> add(std::span<const LockChannel> channels, const CallLimits& limit) override
  {
    std::vector<std::string> heard;
    for (const LockChannel& each : channels) {
      heard.emplace_back(each.channel);
    }
    return listen(heard, limit);
  }
  Result<std::optional<Message>> next(const CallLimits& limit) override
  {
    for (;;) {
      if (!m_connection->messages.empty()) {
        Message first = std::move(m_connection->messages.front());
        m_connection->messages.pop_front();
        return std::optional(std::move(first));
      }
      if (m_connection->is_cut || m_connection->is_closed) {
        return Records::no_answer();
      }
      eventfd_t count = 0;
      ::eventfd_read(m_connection->event.get(), &count);
      if (!m_connection->messages.empty() || m_connection->is_cut) {
        continue;
      }
      if (wait_for(m_connection->event.get(), POLLIN, m_clock, limit) != Waited::ready) {
        return std::optional<Message>{};
      }
    }
  }
  [[nodiscard]] int fd() const override { return m_connection->event.get(); }

 private:
  Records& m_records;
  const Clock& m_clock;
  Records::Connection m_connection;
};

class SimulatedBackend final : public record::Backend {
 public:
  SimulatedBackend(Records& records, const Clock& clock)
      : m_records(records), m_clock(clock), m_client(Fiber::running()->process.client)
  {
    if (records.has_sessions()) {
      m_presences.emplace(records, m_connection, clock);
    }
  }
  ~SimulatedBackend() override { drop_connection(); }
  SimulatedBackend(const SimulatedBackend&) = delete;
  SimulatedBackend& operator=(const SimulatedBackend&) = delete;

  Result<Snapshot> read(std::string_view, const CallLimits& limit) override
  {
    if (m_records.m_mistake == RecordMistake::remembered_decision && m_read.time_us > 0) {
      Snapshot old = std::exchange(m_read, {});
      const auto passed = std::chrono::duration_cast<std::chrono::microseconds>(m_clock.now() - m_read_at).count();
      old.time_us += passed - passed / 500;
      m_read = old;
      m_read.time_us = 0;  // the next one is read again
      return old;
    }
    if (m_presences) {
      return read_with_sessions(limit);
    }
    auto state = m_records.ask<Snapshot>(
        m_connection, [&records = m_records] { return records.state(); }, m_clock, limit);
    if (state) {
      m_read = *state;
      m_read_at = m_clock.now();
    }
    return state;
  }

  Result<Commit> write_if(std::string_view, const record::Version& version, const Change& change,
                          const CallLimits& limit) override
  {
    Records::Commitment wanted{.version = version,
                               .bytes = std::string(change.bytes),
                               .log = change.log,
                               .messages = {change.messages.begin(), change.messages.end()},
                               .read = m_read,
                               .request = request,
                               .client = m_client,
                               .needed = {change.needed.begin(), change.needed.end()}};
    wanted.read.time_us = wanted.read.time_us == 0 ? m_records.m_server.redis().time() : wanted.read.time_us;
    if (m_presences) {
      wanted.gone = m_presences->last_gone();
    }
    const bool puts_late = m_records.mistake() == RecordMistake::presence_after_grant;
    const auto needed = puts_late ? std::exchange(wanted.needed, {}) : std::vector<record::PresenceId>();
    auto committed = m_records.ask<Commit>(
        m_connection, [&records = m_records, wanted] { return records.commit_maybe_twice(wanted); }, m_clock, limit);
    const auto* const done = committed ? std::get_if<Committed>(&*committed) : nullptr;
    if (done == nullptr) {
      m_read = {};
      return committed;
    }
    m_read.version = done->version;
    m_read.bytes = change.bytes;
    const auto put = needed.empty() ? Result(Done{}) : m_presences->put_late(needed, limit);
    return put ? committed : put.error();
  }

  Result<std::unique_ptr<MessageSource>> listen(std::span<const LockChannel> channels, const CallLimits& limit) override
  {
    if (!m_records.m_network.is_up()) {
      return Records::no_answer();
    }
    std::vector<std::string> heard;
    for (const LockChannel& each : channels) {
      heard.emplace_back(each.channel);
    }
    auto source = std::make_unique<SimulatedSource>(m_records, m_clock);
    if (const auto listening = source->listen(heard, limit); !listening) {
      return listening.error();
    }
    return std::unique_ptr<MessageSource>(std::move(source));
  }

  Result<std::vector<std::string>> events(std::string_view, const CallLimits& limit) override
  {
    using Entries = std::vector<std::string>;
    return m_records.ask<Entries>(
        m_connection,
        [&records = m_records] {
          Entries entries;
          for (const auto& [id, entry] : records.m_server.log().entries) {
            entries.push_back(entry);
          }
          return entries;
        },
        m_clock, limit);
  }

  Result<std::vector<std::string>> list(std::string_view, Which, const CallLimits&) override
  {
    return std::vector<std::string>{"stock"};
  }
  void drop_connection() override
  {
    if (m_connection != nullptr && the_records == &m_records) {
      m_records.close(m_connection);
    }
    m_connection.reset();
  }

  record::Presences* presences() override { return m_presences ? &*m_presences : nullptr; }

  Words request;  // that the host runs

 private:
  Result<Snapshot> read_with_sessions(const CallLimits& limit)
  {
    if (const auto ready = m_presences->before_read(limit); !ready) {
      return ready.error();
    }
    auto state = m_records.ask<Snapshot>(
        m_connection, [&records = m_records] { return records.state(); }, m_clock, limit);
    if (state) {
      m_presences->after_read();
      state->time_at = m_clock.now();
      state->time_us = m_records.wall_clock_us(m_client);
      m_read = *state;
    }
    return state;
  }

  Records& m_records;
  const Clock& m_clock;
  const int m_client;
  Records::Connection m_connection;
  std::optional<SimulatedPresences> m_presences;
  Snapshot m_read;
  Instant m_read_at{};
};

// The record engine, whose requests and answers the rules see.
class SimulatedHost final : public ScriptHost {
 public:
  SimulatedHost(Records& records, const Clock& clock, std::uint64_t seed) : m_records(records)
  {
    auto backend = std::make_unique<SimulatedBackend>(records, clock);
    m_backend = backend.get();
    m_engine = std::make_unique<record::RecordHost>(std::move(backend), clock, std::make_unique<SeededRng>(seed));
  }

  Result<Reply> run(const ScriptRequest& request, const CallLimits& limit) override
  {
    const ScriptCall call = call_of(request, false);
    m_backend->request = {"EVALSHA", std::string(call.script.sha1), std::to_string(call.keys.size())};
    m_backend->request.insert(m_backend->request.end(), call.keys.begin(), call.keys.end());
    m_backend->request.insert(m_backend->request.end(), call.args.begin(), call.args.end());
    return noted(m_engine->run(request, limit));
  }
  Result<Reply> command(const LockName& lock, std::span<const std::string_view> argv, const CallLimits& limit) override
  {
    m_backend->request = Words(argv.begin(), argv.end());
    return noted(m_engine->command(lock, argv, limit));
  }
  std::vector<Result<std::vector<std::string>>> logs(std::span<const LockName> locks, const CallLimits& limit) override
  {
    return m_engine->logs(locks, limit);
  }
  Result<std::unique_ptr<MessageSource>> subscribe(std::span<const LockChannel> channels,
                                                   const CallLimits& limit) override
  {
    return m_engine->subscribe(channels, limit);
  }
  Result<std::vector<std::string>> find_locks(std::string_view glob, const PerAnswer& limits) override
  {
    return m_engine->find_locks(glob, limits);
  }
  Result<std::vector<std::string>> find_logs(std::string_view glob, const PerAnswer& limits) override
  {
    return m_engine->find_logs(glob, limits);
  }
  void drop_connection() override { m_engine->drop_connection(); }
  [[nodiscard]] Traits traits() const override { return m_engine->traits(); }
  [[nodiscard]] std::optional<LeaseTerm> lease_of(const Owner& owner) const override
  {
    return m_engine->lease_of(owner);
  }

 private:
  Result<Reply> noted(Result<Reply> reply)
  {
    if (reply) {
      m_records.note_answer(Fiber::running()->process.client, m_backend->request, *reply);
    }
    return reply;
  }

  Records& m_records;
  SimulatedBackend* m_backend = nullptr;
  std::unique_ptr<record::RecordHost> m_engine;
};

void Records::add_engine()
{
  static const bool once = [] {
    rlock::add_engine({.name = scheme,
                       .parse = nullptr,
                       .open = [](const ServerSpec&, const Endpoint&, const Clock& clock,
                                  StopToken) -> Result<std::unique_ptr<LockStore>> {
                         Records& records = current();
                         return std::unique_ptr<LockStore>(std::make_unique<ScriptStore>(
                             std::make_unique<SimulatedHost>(records, clock, records.m_rng.next()), clock));
                       }});
    return true;
  }();
  static_cast<void>(once);
}

}  // namespace rlock::sim
