// SPDX-License-Identifier: Apache-2.0
#include "support/redis_fixture.h"
#include "support/give_up.h"
#include "support/paths.h"

#include "base/defaults.h"
#include "base/fd.h"
#include "redis/connection.h"
#include "support/skip.h"
#include "support/sockets.h"
#include "support/temp_dir.h"
#include "support/wait_until.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string_view>
#include <utility>

#include <sys/socket.h>
#include <unistd.h>

namespace rlock::test {

std::string server_program()
{
  if (const char* named = std::getenv("RLOCK_TEST_SERVER"); named != nullptr) {
    return named;
  }
  const char* path = std::getenv("PATH");
  std::istringstream directories(path != nullptr ? path : "/usr/bin");
  for (std::string directory; std::getline(directories, directory, ':');) {
    for (const char* name : {"/redis-server", "/valkey-server"}) {
      if (::access((directory + name).c_str(), X_OK) == 0) {
        return directory + name;
      }
    }
  }
  skip("no redis-server and no valkey-server in PATH");
}

std::string client_program()
{
  const std::string server = server_program();
  return server.substr(0, server.rfind("-server")) + "-cli";
}

Result<Reply> ask(const Endpoint& endpoint, const std::vector<std::string>& words, Millis timeout)
{
  const BootClock clock;
  const CallLimits limit{.deadline = clock.now() + timeout, .stop = StopToken::never()};
  Result<Connection> connection = Connection::open(endpoint, clock, limit);
  if (!connection) {
    return connection.error();
  }
  return connection->call(std::vector<std::string_view>(words.begin(), words.end()), limit);
}

namespace {

Endpoint endpoint_of(const std::filesystem::path& socket, const std::string& password)
{
  Endpoint endpoint;
  endpoint.kind = Endpoint::Kind::unix_socket;
  endpoint.path = socket;
  endpoint.password = password;
  return endpoint;
}

// A quorum client subscribes to most of the servers, and not always to the first.
Reply union_of(std::vector<Reply> answers)
{
  Reply all = std::move(answers.front());
  for (std::size_t i = 1; i < answers.size(); ++i) {
    for (const Reply& element : answers[i].elements) {
      const auto is_it = [&](const Reply& known) { return known.text == element.text; };
      if (std::none_of(all.elements.begin(), all.elements.end(), is_it)) {
        all.elements.push_back(element);
      }
    }
  }
  return all;
}

// The median of numbers; of other answers the one that is given most often, the earliest of several.
Reply answer_of_most(std::vector<Reply> answers)
{
  const auto is_number = [](const Reply& reply) { return reply.kind == Reply::Kind::integer; };
  if (std::all_of(answers.begin(), answers.end(), is_number)) {
    const auto middle = answers.begin() + static_cast<std::ptrdiff_t>(answers.size() / 2);
    std::nth_element(answers.begin(), middle, answers.end(),
                     [](const Reply& a, const Reply& b) { return a.integer < b.integer; });
    return *middle;
  }
  std::map<std::string, int> times;
  for (const Reply& answer : answers) {
    ++times[show(answer)];
  }
  return *std::max_element(answers.begin(), answers.end(),
                           [&](const Reply& a, const Reply& b) { return times.at(show(a)) < times.at(show(b)); });
}

}  // namespace

RedisServer::RedisServer(RedisOptions options) : m_options(std::move(options)), m_dir(make_temp_dir("redis"))
{
  const bool there = uses_topology(m_options);
  const RedisOptions plain = m_options;
  if (there) {
    m_options = topology_options(std::move(m_options));
  }
  start();
  m_topology = there ? make_topology(*this, plain) : nullptr;
}

void RedisServer::also(const std::function<void(RedisServer&)>& act) const
{
  if (m_topology) {
    m_topology->for_other_servers(act);
  }
}

// If another process took the port after free_port, the server ends at once, and the next port is tried.
void RedisServer::start()
{
  for (int tries = 0; tries < 5; ++tries) {
    if (m_options.tcp && m_port == 0) {
      m_port = free_port();
      m_bus_port = m_options.cluster ? free_port() : 0;
    }
    std::ofstream(m_dir / "redis.conf") << "bind 127.0.0.1\n"
                                        << ports() << "unixsocket redis.sock\n"
                                        << "unixsocketperm 700\n"
                                        << "logfile redis.log\n"
                                        << "save \"\"\n";
    std::vector<std::string> argv{server_program(), "redis.conf"};
    if (m_options.cluster) {
      argv.insert(argv.end(), {"--cluster-enabled", "yes", "--cluster-port", std::to_string(m_bus_port)});
    }
    if (!m_options.password.empty()) {
      argv.insert(argv.end(), {"--requirepass", m_options.password});
    }
    argv.insert(argv.end(), m_options.args.begin(), m_options.args.end());

    std::filesystem::remove(socket_path());
    // A test may limit the size of the server's files: a write is then an error, as on a full disk, and not its end.
    const ProcessOptions process{
        .env = own_clock(), .cwd = m_dir, .ignored_signals = {SIGXFSZ}, .death_signal = SIGKILL};
    m_process.emplace(std::move(argv), process);

    const Endpoint endpoint = endpoint_of(socket_path(), m_options.password);
    const auto is_decided = [&] {
      const Result<Reply> reply = ask(endpoint, {"PING"}, std::chrono::seconds(1));
      return (reply && !reply->is_error()) || !m_process->running();
    };
    wait_until(is_decided, "the server answers PING; its log: " + log_path().string());
    if (m_process->running()) {
      return;
    }
    m_port = 0;
  }
  give_up("the server does not start; its log: " + log_path().string());
}

std::string RedisServer::url() const { return m_topology ? m_topology->url() : "unix://" + socket_path().string(); }

std::string RedisServer::direct_url() const
{
  return "unix://" + (m_options.password.empty() ? "" : ":" + m_options.password + "@") + socket_path().string();
}

std::string RedisServer::tcp_url() const
{
  return (m_options.tls ? "rediss://127.0.0.1:" : "redis://127.0.0.1:") + std::to_string(m_port);
}

std::string RedisServer::ports() const
{
  const std::string port = std::to_string(m_port) + "\n";
  if (!m_options.tls) {
    return "port " + port;
  }
  const bool asks = !m_options.client_ca.empty();
  return "port 0\ntls-port " + port + "tls-cert-file " + m_options.tls->file + "\ntls-key-file " + m_options.tls->key +
         "\ntls-ca-cert-file " + (asks ? m_options.client_ca : m_options.tls->file) + "\ntls-auth-clients " +
         (asks ? "yes\n" : "no\n");
}

void RedisServer::stop_signal()
{
  stop_process(m_process->pid());
  if (m_topology) {
    m_topology->signal_store(SIGSTOP);
  }
  also([](RedisServer& other) { other.stop_signal(); });
}

void RedisServer::cont()
{
  m_process->signal(SIGCONT);
  if (m_topology) {
    m_topology->signal_store(SIGCONT);
  }
  also([](RedisServer& other) { other.cont(); });
}

std::map<std::string, std::optional<std::string>> RedisServer::own_clock() const
{
  if (!m_options.own_clock) {
    return {};
  }
  if (!std::filesystem::exists(m_dir / "clock")) {
    std::ofstream(m_dir / "clock") << std::string(sizeof(std::int64_t), '\0');
  }
  std::map<std::string, std::optional<std::string>> variables{{"LD_PRELOAD", RLOCK_PRELOAD_CLOCK},
                                                              {"RLOCK_TEST_CLOCK", (m_dir / "clock").string()}};
  if (m_options.clock_stands) {
    variables["RLOCK_TEST_CLOCK_STANDS"] = "1";
  }
  return variables;
}

void RedisServer::step_clock(Millis by) const
{
  std::fstream file(m_dir / "clock", std::ios::in | std::ios::out | std::ios::binary);
  std::int64_t ns = 0;
  file.read(reinterpret_cast<char*>(&ns), sizeof ns);
  ns += std::chrono::nanoseconds(by).count();
  file.seekp(0);
  file.write(reinterpret_cast<const char*>(&ns), sizeof ns);
}

void RedisServer::kill_hard()
{
  m_process->signal(SIGKILL);
  m_process->wait();
  if (m_topology) {
    m_topology->signal_store(SIGKILL);
  }
  also([](RedisServer& other) { other.kill_hard(); });
}

void RedisServer::restart()
{
  m_process->signal(SIGTERM);
  m_process->wait();
  start();
  if (m_topology) {
    m_topology->started(*this);
    m_topology->restart_store();
  }
  also([](RedisServer& other) { other.restart(); });
}

std::vector<Reply> RedisServer::answers(const std::vector<std::string>& words) const
{
  std::vector<Reply> answers(1);
  also([&](const RedisServer& other) { answers.push_back(other.ask_alone(words)); });
  answers.front() = ask_alone(words);
  return answers;
}

Reply RedisServer::command(const std::vector<std::string>& words) const
{
  std::vector<Reply> answers = this->answers(words);
  const bool counts_subscribers = words.size() > 1 && words[0] == "PUBSUB" && words[1] == "CHANNELS";
  return counts_subscribers ? union_of(std::move(answers)) : answer_of_most(std::move(answers));
}

Result<Reply> RedisServer::try_command(const std::vector<std::string>& words) const
{
  if (m_topology) {
    if (auto answer = m_topology->answer(words)) {
      return *std::move(answer);
    }
  }
  return ask(endpoint_of(socket_path(), m_options.password), m_topology ? m_topology->translated(words) : words,
             std::chrono::seconds(10));
}

Reply RedisServer::ask_alone(const std::vector<std::string>& words) const
{
  Result<Reply> reply = try_command(words);
  if (!reply) {
    give_up("no answer to " + words.front() + ": " + reply.error().text);
  }
  return *std::move(reply);
}

std::int64_t calls_of(const RedisServer& server, const std::string& command)
{
  const std::string stats = as_text(server.command({"INFO", "commandstats"}));
  const std::string mark = "cmdstat_" + command + ":calls=";
  const auto at = stats.find(mark);
  return at == std::string::npos ? 0 : std::stoll(stats.substr(at + mark.size()));
}

Finished rlock_on(const RedisServer& server, Words words, const ProcessOptions& options)
{
  return run_at(server.url(), std::move(words), options);
}

Process start_on(const RedisServer& server, Words words, const ProcessOptions& options)
{
  return start_at(server.url(), std::move(words), options);
}

Process held_run(const RedisServer& server, Words options, const Words& job)
{
  if (options.empty() || options.front() != "-k") {
    options.insert(options.begin(), {"-k", "k"});
  }
  Process holder = start_run(server.url(), options, job);
  wait_until([&] { return is_held(server, options[1]); }, options[1] + " is held");
  return holder;
}

bool is_held(const RedisServer& server, const std::string& key) { return as_int(server.command({"EXISTS", key})) == 1; }

std::size_t listening(const RedisServer& server)
{
  return as_texts(server.command({"PUBSUB", "CHANNELS", "rlock:owner:*"})).size();
}

void shut_down(const std::filesystem::path& socket)
{
  const Endpoint endpoint = endpoint_of(socket, "");
  const auto is_gone = [&] { return !ask(endpoint, {"SHUTDOWN", "NOSAVE"}, std::chrono::seconds(1)); };
  wait_until(is_gone, "no server listens at " + socket.string());
}

}  // namespace rlock::test
