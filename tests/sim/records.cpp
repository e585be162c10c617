// SPDX-License-Identifier: Apache-2.0
#include "sim/records.h"

#include "base/wait.h"
#include "store/open.h"
#include "store/record/record_codec.h"
#include "store/record/record_host.h"
#include "store/script/script_store.h"

#include <algorithm>

#include <sys/eventfd.h>

namespace rlock::sim {

namespace {

using record::Change;
using record::Commit;
using record::Committed;
using record::Conflict;
using record::Snapshot;

Records* the_records = nullptr;

Error no_answer() { return {ErrorCode::unreachable, "the simulated store did not answer"}; }

Value value_of(const Reply& reply)
{
  switch (reply.kind) {
    case Reply::Kind::integer: return Value::of(reply.integer);
    case Reply::Kind::text: return Value::of(reply.text);
    case Reply::Kind::error: return Value::error(reply.text);
    case Reply::Kind::array: break;
    default: return {};
  }
  Value list = Value::array();
  for (const Reply& element : reply.elements) {
    list.elements.push_back(value_of(element));
  }
  return list;
}

}  // namespace

Records::Records(World& world, Network& network, Server& server, std::uint64_t seed, RecordMistake mistake)
    : m_world(world), m_network(network), m_server(server), m_rng(seed * 613 + 7), m_mistake(mistake)
{
  the_records = this;
  m_network.on_cut = [this](int client) { cut_connections(client); };
  m_network.on_death = [this](const Process& process) { process_died(process); };
  m_server.redis().on_publish = nullptr;  // the engine delivers
  m_server.redis().count_subscribers = [this](const std::string& channel) {
    const auto now = listeners();
    return std::ranges::count(now, channel) > 0 || std::ranges::count(m_listened_at_read, channel) > 0 ? 1 : 0;
  };
}

Records::~Records() { the_records = nullptr; }

Records& Records::current() { return *the_records; }

Records::Connection Records::connect()
{
  const Process& process = Fiber::running()->process;
  auto connection = std::make_shared<RecordConnection>(RecordConnection{
      .owner = &process, .client = process.client, .event = Fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK))});
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
  std::erase_if(m_connections, [&](const Connection& connection) {
    const bool ends = client < 0 || connection->client == client;
    if (ends) {
      connection->is_cut = true;
      ::eventfd_write(connection->event.get(), 1);
    }
    return ends;
  });
}

void Records::send(const Connection& connection, std::function<void()> arrive)
{
  const Nanos now = m_world.now();
  connection->requests_lost =
      connection->requests_lost || now < m_network.link(connection->client).loses_requests_until;
  if (connection->requests_lost) {
    return;
  }
  connection->last_arrival = std::max(connection->last_arrival + 1, now + m_network.latency(connection->client));
  m_world.at(connection->last_arrival, [connection, arrive = std::move(arrive)] {
    if (!connection->is_cut) {
      arrive();
    }
  });
}

void Records::deliver(const Connection& connection, std::function<void()> arrive)
{
  const Nanos now = m_world.now();
  connection->answers_lost = connection->answers_lost || now < m_network.link(connection->client).loses_answers_until;
  if (connection->answers_lost) {
    return;
  }
  connection->last_delivery = std::max(connection->last_delivery + 1, now + m_network.latency(connection->client));
  m_world.at(connection->last_delivery, [connection, arrive = std::move(arrive)] {
    if (!connection->is_cut && !connection->is_closed) {
      arrive();
      ::eventfd_write(connection->event.get(), 1);
    }
  });
}

// One request and its answer. After an error the connection is closed, as record_backend.h demands.
template <typename Answer>
Result<Answer> Records::ask(Connection& connection, std::function<Answer()> at_store, const Clock& clock,
                            const CallLimits& limit)
{
  if (connection == nullptr || connection->is_cut || connection->is_closed) {
    connection = m_network.is_up() ? connect() : nullptr;
  }
  if (connection == nullptr) {
    return no_answer();
  }
  const auto answer = std::make_shared<std::optional<Answer>>();
  send(connection, [this, connection, answer, at_store = std::move(at_store)] {
    auto done = std::make_shared<Answer>(at_store());
    deliver(connection, [answer, done] { *answer = std::move(*done); });
  });
  while (!*answer && !connection->is_cut) {
    const Waited waited = wait_for(connection->event.get(), POLLIN, clock, limit);
    if (waited != Waited::ready) {
      close(connection);
      return waited == Waited::stopped ? interrupted() : no_answer();
    }
    eventfd_t count = 0;
    ::eventfd_read(connection->event.get(), &count);
  }
  return *answer ? Result<Answer>(std::move(**answer)) : Result<Answer>(no_answer());
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
                .bytes = record::encode({.keys = keys.keys(), .log_base = m_server.log().base}),
                .time_us = keys.time(),
                .listeners = listeners()};
  if (m_mistake == RecordMistake::time_after_state) {
    read.time_us += m_rng.up_to(700'000);
  }
  return read;
}

Commit Records::commit(const Commitment& wanted)
{
  if (wanted.version != m_server.version() && m_mistake != RecordMistake::no_comparison) {
    ++m_conflicts;
    return Conflict{};
  }
  auto record = record::decode(wanted.bytes);
  if (!record) {
    throw std::logic_error("a client wrote a record that cannot be read: " + record.error().text);
  }
  m_listened_at_read = wanted.read.listeners;
  m_server.set_rule_time(wanted.read.time_us);
  if (wanted.version == m_server.version()) {
    // The rules compare with the state that was read. A later read of another client may have removed a key that has expired since.
    m_server.redis().replace(record::decode(wanted.read.bytes)->keys);
  }
  m_network.before_request(wanted.request);
  m_server.write_record(std::move(*record), wanted.log);
  if (m_mistake == RecordMistake::version_comes_back) {
    m_server.reuse_version();
  }
  if (m_mistake != RecordMistake::loses_messages) {
    for (const Message& message : wanted.messages) {
      for (const Connection& connection : m_connections) {
        if (std::ranges::count(connection->channels, message.channel) > 0) {
          deliver(connection, [connection, message] { connection->messages.push_back(message); });
        }
      }
    }
  }
  m_network.after_request(wanted.client, wanted.request, Value::status("a commit"));
  m_server.set_rule_time(std::nullopt);
  m_listened_at_read.clear();
  return Committed{m_server.version()};
}

void Records::begin_to_listen(const Connection& connection, const std::vector<std::string>& channels)
{
  connection->channels.insert(connection->channels.end(), channels.begin(), channels.end());
  m_server.change_version();
}

// The rules look at an answer when it is known, which for a commit is after its change.
void Records::note_answer(int client, const Words& request, const Value& answer)
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
      return no_answer();
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
  Result<Done> add(const LockChannel& channel, const CallLimits& limit) override
  {
    return listen({std::string(channel.channel)}, limit);
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
        return no_answer();
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
                               .client = m_client};
    wanted.read.time_us = wanted.read.time_us == 0 ? m_records.m_server.redis().time() : wanted.read.time_us;
    auto committed = m_records.ask<Commit>(
        m_connection, [&records = m_records, wanted] { return records.commit(wanted); }, m_clock, limit);
    const auto* const done = committed ? std::get_if<Committed>(&*committed) : nullptr;
    if (done == nullptr) {
      m_read = {};
    } else {
      m_read.version = done->version;
      m_read.bytes = change.bytes;
    }
    return committed;
  }

  Result<std::unique_ptr<MessageSource>> listen(std::span<const LockChannel> channels, const CallLimits& limit) override
  {
    if (!m_records.m_network.is_up()) {
      return no_answer();
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

  Words request;  // that the host runs

 private:
  Records& m_records;
  const Clock& m_clock;
  const int m_client;
  Records::Connection m_connection;
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
    m_backend->request = {"EVALSHA", std::string(request.script.sha1), std::to_string(request.keys.size())};
    m_backend->request.insert(m_backend->request.end(), request.keys.begin(), request.keys.end());
    m_backend->request.insert(m_backend->request.end(), request.args.begin(), request.args.end());
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
  Result<Done> await_replicas(const LockRequest& request, const CallLimits& limit) override
  {
    return m_engine->await_replicas(request, limit);
  }
  [[nodiscard]] bool is_about_one_lock(const Error& refused) const override
  {
    return m_engine->is_about_one_lock(refused);
  }
  void drop_connection() override { m_engine->drop_connection(); }

 private:
  Result<Reply> noted(Result<Reply> reply)
  {
    if (reply) {
      m_records.note_answer(Fiber::running()->process.client, m_backend->request, value_of(*reply));
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
    rlock::add_engine({.scheme = scheme,
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
