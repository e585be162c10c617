// SPDX-License-Identifier: Apache-2.0
#include "support/redis_fixture.h"

#include "base/fd.h"
#include "base/stop.h"
#include "support/skip.h"
#include "support/temp_dir.h"
#include "support/wait_until.h"
#include "wire/connection.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string_view>
#include <utility>

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace rlock::test {
namespace {

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

// Free at this moment; whoever is quicker may still take it.
std::uint16_t free_port()
{
  const Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  REQUIRE(::bind(socket.get(), any, size) == 0);
  REQUIRE(::getsockname(socket.get(), any, &size) == 0);
  return ntohs(address.sin_port);
}

Result<Reply> ask(const Endpoint& endpoint, const std::vector<std::string>& words, Millis timeout)
{
  const BootClock clock;
  const Limit limit{.deadline = clock.now() + timeout, .stop = Stop::never()};
  Result<Connection> connection = Connection::open(endpoint, clock, limit);
  if (!connection) {
    return connection.error();
  }
  return connection->call(std::vector<std::string_view>(words.begin(), words.end()), limit);
}

Endpoint endpoint_of(const std::filesystem::path& socket, const std::string& password)
{
  Endpoint endpoint;
  endpoint.kind = Endpoint::Kind::unix_socket;
  endpoint.path = socket;
  endpoint.password = password;
  return endpoint;
}

}  // namespace

RedisServer::RedisServer(RedisOptions options)
    : m_options(std::move(options)), m_dir(make_temp_dir("redis"))
{
  start();
}

// A server whose port was taken between free_port and now leaves at once: then the next is tried.
void RedisServer::start()
{
  for (int tries = 0; tries < 5; ++tries) {
    if (m_options.tcp && m_port == 0) {
      m_port = free_port();
    }
    std::ofstream(m_dir / "redis.conf") << "bind 127.0.0.1\n"
                                        << "port " << m_port << "\n"
                                        << "unixsocket redis.sock\n"
                                        << "unixsocketperm 700\n"
                                        << "logfile redis.log\n"
                                        << "save \"\"\n";
    std::vector<std::string> argv{server_program(), "redis.conf"};
    if (!m_options.password.empty()) {
      argv.insert(argv.end(), {"--requirepass", m_options.password});
    }
    argv.insert(argv.end(), m_options.args.begin(), m_options.args.end());

    std::filesystem::remove(socket_path());
    m_process.emplace(std::move(argv), ProcessOptions{.cwd = m_dir, .death_signal = SIGKILL});

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
  FAIL("the server does not start; its log: " << log_path().string());
}

std::string RedisServer::url() const { return "unix://" + socket_path().string(); }
std::string RedisServer::tcp_url() const { return "redis://127.0.0.1:" + std::to_string(m_port); }

void RedisServer::kill_hard()
{
  m_process->signal(SIGKILL);
  m_process->wait();
}

void RedisServer::restart()
{
  m_process->signal(SIGTERM);
  m_process->wait();
  start();
}

Reply RedisServer::command(const std::vector<std::string>& words) const
{
  Result<Reply> reply =
      ask(endpoint_of(socket_path(), m_options.password), words, std::chrono::seconds(10));
  if (!reply) {
    FAIL("no answer to " << words.front() << ": " << reply.error().text);
  }
  return *std::move(reply);
}

std::string show(const Reply& reply)
{
  switch (reply.kind) {
    case Reply::Kind::nil: return "nil";
    case Reply::Kind::integer: return std::to_string(reply.integer);
    case Reply::Kind::text: return '"' + reply.text + '"';
    case Reply::Kind::error: return "error: " + reply.text;
    case Reply::Kind::array: break;
  }
  std::string elements;
  for (const Reply& element : reply.elements) {
    elements += (elements.empty() ? "" : ", ") + show(element);
  }
  return "[" + elements + "]";
}

std::int64_t as_int(const Reply& reply)
{
  REQUIRE_MESSAGE(reply.kind == Reply::Kind::integer, "not an integer: " << show(reply));
  return reply.integer;
}

std::string as_text(const Reply& reply)
{
  REQUIRE_MESSAGE(reply.kind == Reply::Kind::text, "not a text: " << show(reply));
  return reply.text;
}

std::vector<std::string> as_texts(const Reply& reply)
{
  REQUIRE_MESSAGE(reply.kind == Reply::Kind::array, "not an array: " << show(reply));
  std::vector<std::string> texts;
  for (const Reply& element : reply.elements) {
    texts.push_back(as_text(element));
  }
  return texts;
}

std::int64_t calls(const RedisServer& server, const std::string& command)
{
  const std::string stats = as_text(server.command({"INFO", "commandstats"}));
  const std::string mark = "cmdstat_" + command + ":calls=";
  const auto at = stats.find(mark);
  return at == std::string::npos ? 0 : std::stoll(stats.substr(at + mark.size()));
}

void shut_down(const std::filesystem::path& socket)
{
  const Endpoint endpoint = endpoint_of(socket, "");
  const auto is_gone = [&] {
    return !ask(endpoint, {"SHUTDOWN", "NOSAVE"}, std::chrono::seconds(1));
  };
  wait_until(is_gone, "no server listens at " + socket.string());
}

}  // namespace rlock::test
