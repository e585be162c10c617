// SPDX-License-Identifier: Apache-2.0
#include "judge/proxy.h"

#include "support/sockets.h"
#include "support/temp_dir.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

namespace rlock::judge {
namespace {

constexpr std::size_t drop_size = 7;  // bytes of a dripping reply or request that arrive together

// The peer gets a reset instead of the end of the stream. For a unix socket it is the end.
void reset(Fd& socket)
{
  const linger at_once{.l_onoff = 1, .l_linger = 0};
  ::setsockopt(socket.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  socket.reset();
}

}  // namespace

Proxy::Proxy(std::filesystem::path server, Listens listens)
    : m_server(std::move(server)), m_wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK))
{
  listen(listens);
}

Proxy::Proxy(std::uint16_t server_port) : m_server_port(server_port), m_wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK))
{
  listen(Listens::tcp);
}

void Proxy::listen(Listens listens)
{
  if (listens == Listens::tcp) {
    m_listener = test::tcp_listener(m_port, SOCK_NONBLOCK);
  } else {
    m_path = test::make_temp_dir("proxy") / "socket";
    m_listener = test::unix_listener(m_path, SOCK_NONBLOCK);
  }
  m_thread = std::thread([this] { run(); });
}

Fd Proxy::connect_to_server() const
{
  return m_server_port == 0 ? test::connect_to(m_server, SOCK_NONBLOCK)
                            : test::connect_to(m_server_port, SOCK_NONBLOCK);
}

Proxy::~Proxy()
{
  m_over = true;
  wake();
  m_thread.join();
}

std::string Proxy::url() const { return "unix://" + m_path.string(); }

void Proxy::wake() const
{
  const std::uint64_t one = 1;
  static_cast<void>(::write(m_wake.get(), &one, sizeof one));
}

void Proxy::begin(const Disturbance& disturbance)
{
  const MutexLock lock(m_mutex);
  m_disturbance = disturbance;
  m_random.seed(disturbance.seed);
  m_disturbed = true;
  m_count = 0;
  ++m_changes;
  for (Connection& connection : m_connections) {
    connection.disturbed = choose();
  }
  std::erase_if(m_connections, [this](Connection& connection) REQUIRES(m_mutex) { return is_cut(connection); });
  wake();
}

std::uint64_t Proxy::end()
{
  const MutexLock lock(m_mutex);
  m_disturbed = false;
  ++m_changes;
  std::erase_if(m_connections, [](const Connection& connection) { return connection.broken; });
  for (Connection& connection : m_connections) {
    for (Flow* flow : {&connection.requests, &connection.replies}) {
      for (Piece& piece : flow->waiting) {
        piece.due = Instant{};
      }
    }
  }
  wake();
  return std::exchange(m_count, 0);
}

bool Proxy::choose() { return m_random() % 100 < m_disturbance.percent; }

bool Proxy::disturbs(Direction direction) const
{
  return m_disturbance.direction == Direction::both || m_disturbance.direction == direction;
}

// True when nothing is left of the connection. With one direction only, one end stays.
bool Proxy::is_cut(Connection& connection)
{
  if (!connection.disturbed || m_disturbance.harm != Harm::cut) {
    return false;
  }
  ++m_count;
  connection.broken = true;
  for (Flow* flow : {&connection.requests, &connection.replies}) {
    flow->waiting.clear();
    if (disturbs(flow == &connection.requests ? Direction::to_client : Direction::to_server)) {
      reset(flow->from);
      flow->over = true;
    }
  }
  return m_disturbance.direction == Direction::both;
}

void Proxy::run()
{
  while (!m_over) {
    MutexLock lock(m_mutex);
    const std::uint64_t changes = m_changes;
    Instant until = far_future;
    std::vector<pollfd> waited = waits(until);
    lock.unlock();
    poll_until(waited, BootClock().now(), until);
    std::uint64_t count = 0;
    static_cast<void>(::read(m_wake.get(), &count, sizeof count));
    lock.lock();
    if (changes == m_changes) {
      serve(waited);
    }
  }
}

// The first two are those of the proxy, and each connection has two. An end that is over is not waited for, because
// poll(2) would report it each time.
std::vector<pollfd> Proxy::waits(Instant& until)
{
  std::vector<pollfd> all{{.fd = m_wake.get(), .events = POLLIN, .revents = 0},
                          {.fd = m_listener.get(), .events = POLLIN, .revents = 0}};
  for (const Connection& connection : m_connections) {
    for (const Flow* flow : {&connection.requests, &connection.replies}) {
      all.push_back({.fd = flow->over ? -1 : flow->from.get(), .events = POLLIN, .revents = 0});
      if (!flow->waiting.empty()) {
        until = std::min(until, flow->waiting.front().due);
      }
    }
  }
  return all;
}

void Proxy::serve(const std::vector<pollfd>& waits)
{
  std::size_t at = 2;
  for (auto each = m_connections.begin(); each != m_connections.end(); at += 2) {
    if (waits[at].revents != 0) {
      receive(*each, Direction::to_server);
    }
    if (waits[at + 1].revents != 0) {
      receive(*each, Direction::to_client);
    }
    const bool lasts = send_due(each->requests, each->replies.from) && send_due(each->replies, each->requests.from);
    each = lasts ? std::next(each) : m_connections.erase(each);
  }
  if (waits[1].revents != 0) {
    accept_one();
  }
}

void Proxy::accept_one()
{
  Connection connection;
  connection.requests.from = Fd(::accept4(m_listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  connection.disturbed = m_disturbed && choose();
  if (connection.disturbed && m_disturbance.harm == Harm::cut) {
    ++m_count;
    reset(connection.requests.from);
    return;
  }
  connection.replies.from = connect_to_server();
  if (connection.requests.from && connection.replies.from) {
    m_connections.push_back(std::move(connection));
  }
}

void Proxy::receive(Connection& connection, Direction direction)
{
  Flow& flow = direction == Direction::to_server ? connection.requests : connection.replies;
  std::array<char, 65536> bytes;  // NOLINT(*-member-init): recv fills it
  const auto count = ::recv(flow.from.get(), bytes.data(), bytes.size(), 0);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) {
    return;
  }
  flow.over = count <= 0;
  add(connection, direction, std::string(bytes.data(), flow.over ? 0 : static_cast<std::size_t>(count)));
}

void Proxy::add(Connection& connection, Direction direction, std::string bytes)
{
  Flow& flow = direction == Direction::to_server ? connection.requests : connection.replies;
  const Instant now = BootClock().now();
  const Instant earliest = flow.waiting.empty() ? now : std::max(now, flow.waiting.back().due);
  const auto append = [&](Instant due, std::string part) {
    flow.waiting.push_back({.due = std::max(due, earliest), .bytes = std::move(part)});
  };
  if (!m_disturbed || !connection.disturbed || !disturbs(direction)) {
    append(now, std::move(bytes));
    return;
  }
  ++m_count;
  switch (m_disturbance.harm) {
    case Harm::delay: append(now + m_disturbance.pause, std::move(bytes)); break;
    case Harm::hold: append(far_future, std::move(bytes)); break;
    case Harm::swallow:
    case Harm::cut: connection.broken = true; break;
    case Harm::drip:
      for (std::size_t from = 0; from == 0 || from < bytes.size(); from += drop_size) {
        append((from == 0 ? now : flow.waiting.back().due) + m_disturbance.pause, bytes.substr(from, drop_size));
      }
      break;
  }
}

bool Proxy::send_due(Flow& flow, const Fd& to)
{
  const Instant now = BootClock().now();
  while (!flow.waiting.empty() && flow.waiting.front().due <= now) {
    std::string& bytes = flow.waiting.front().bytes;
    if (bytes.empty()) {
      return false;
    }
    const auto count = ::send(to.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count < 0 && errno == EAGAIN) {  // the receiver is stopped
      flow.waiting.front().due = now + Millis(1);
      return true;
    }
    if (count < 0) {
      return false;
    }
    bytes.erase(0, static_cast<std::size_t>(count));
    if (bytes.empty()) {
      flow.waiting.pop_front();
    }
  }
  return true;
}

}  // namespace rlock::judge
