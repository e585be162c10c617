// SPDX-License-Identifier: Apache-2.0
#include "support/relay.h"

#include "support/topology.h"

#include "redis/codec.h"
#include "support/sockets.h"
#include "support/temp_dir.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include <poll.h>
#include <sys/socket.h>

namespace rlock::test {
namespace {

constexpr Millis drip_pause{1};
constexpr std::size_t longest_drip = 40;  // bytes; the rest comes at once
constexpr int last_answer = 1000;         // ms that a server has for an answer when the relay ends

bool send_all(const Fd& to, std::string_view bytes)
{
  while (!bytes.empty()) {
    const ssize_t sent = ::send(to.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) {
      return false;
    }
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

// Empty: the peer is gone.
std::string receive_some(const Fd& from)
{
  std::array<char, 65536> bytes;  // NOLINT(*-member-init): recv fills it
  const ssize_t count = ::recv(from.get(), bytes.data(), bytes.size(), 0);
  return count > 0 ? std::string(bytes.data(), static_cast<std::size_t>(count)) : std::string();
}

// The number of a line "*3" or "$12" at `at`, which moves behind it; negative: the line is not complete.
std::int64_t take_number(std::string_view bytes, std::size_t& at)
{
  const std::size_t end = bytes.find("\r\n", at);
  std::int64_t number = -1;
  if (end != std::string_view::npos) {
    std::from_chars(bytes.data() + at + 1, bytes.data() + end, number);
    at = end + 2;
  }
  return number;
}

bool is_script(std::string_view request) { return request.find("\r\nEVAL") != std::string_view::npos; }

std::string shown(const Reply& reply)
{
  std::string text = reply.text;
  for (const Reply& element : reply.elements) {
    text += " " + shown(element);
  }
  return reply.kind == Reply::Kind::integer ? std::to_string(reply.integer) : text;
}

// The answers of scripts begin with a word. What follows may be a time that is left, but for the fencing number.
std::string essence(const std::string& answer)
{
  Decoder decoder;
  decoder.feed(answer);
  const auto reply = decoder.next();
  if (!reply || !*reply || (*reply)->elements.empty()) {
    return answer;
  }
  const auto& words = (*reply)->elements;
  const bool is_grant = words.front().text == "granted" && words.size() > 2;
  return words.front().text + (is_grant ? " " + shown(words[1]) + " " + shown(words[2]) : "");
}

// How many bytes the first request of `bytes` has; 0: it is not complete.
std::size_t request_size(std::string_view bytes)
{
  std::size_t at = 0;
  const std::int64_t words = take_number(bytes, at);
  for (std::int64_t i = 0; i < words; ++i) {
    const std::int64_t length = take_number(bytes, at);
    at += length < 0 ? bytes.size() + 1 : static_cast<std::size_t>(length) + 2;
    if (at > bytes.size()) {
      return 0;
    }
  }
  return words < 0 ? 0 : at;
}

}  // namespace

// One connection of a client. Lives on a thread of its own, so every fault is a few plain statements.
class Relay::Session {
 public:
  Session(Relay& relay, Fd client)
      : m_relay(relay), m_client(std::move(client)), m_server(connect_to(relay.m_server)), m_lasts(bool(m_server))
  {
  }

  void run()
  {
    const StopToken over = m_relay.m_over.token();
    while (m_lasts && !over.requested()) {
      std::array<pollfd, 3> waits{pollfd{.fd = m_client.get(), .events = POLLIN, .revents = 0},
                                  pollfd{.fd = m_server.get(), .events = POLLIN, .revents = 0},
                                  pollfd{.fd = over.fd(), .events = POLLIN, .revents = 0}};
      ::poll(waits.data(), waits.size(), -1);
      if (waits[1].revents != 0) {
        const std::string push = receive_some(m_server);
        m_lasts = !push.empty() && send_all(m_client, push);
      }
      if (waits[0].revents != 0) {
        take_requests();
      }
    }
  }

 private:
  void take_requests()
  {
    const std::string bytes = receive_some(m_client);
    m_lasts = m_lasts && !bytes.empty();
    m_unread += bytes;
    for (std::size_t size = request_size(m_unread); m_lasts && size > 0; size = request_size(m_unread)) {
      const std::string request = m_unread.substr(0, size);
      m_unread.erase(0, size);
      m_lasts = handle(request, choose(request));
    }
  }

  std::optional<Fault> choose(const std::string& request)
  {
    return m_relay.m_options.choose ? m_relay.m_options.choose(request) : m_relay.apply_rules(request);
  }

  // False: the connection is cut.
  bool handle(const std::string& request, std::optional<Fault> fault)
  {
    if (fault == Fault::answer_replaced || fault == Fault::held) {
      const std::lock_guard guard(m_relay.m_mutex);
      if (fault == Fault::answer_replaced) {
        return send_all(m_client, m_relay.m_reply);
      }
      m_relay.m_held.push_back({.server = std::move(m_server), .request = request});
      return true;  // poll(2) passes over the descriptor that is gone
    }
    if (fault == Fault::not_sent || fault == Fault::half_sent) {
      const std::size_t sent = fault == Fault::half_sent ? request.size() / 2 : 0;
      send_all(m_server, std::string_view(request).substr(0, sent));
      look();
      return false;
    }
    if (fault == Fault::request_late) {
      pause(m_relay.m_options.too_late);
    }
    const std::string answer = execute(request, fault == Fault::sent_twice);
    return !answer.empty() && deliver(answer, fault);
  }

  bool deliver(const std::string& answer, std::optional<Fault> fault)
  {
    const std::string_view half = std::string_view(answer).substr(0, answer.size() / 2);
    switch (fault.value_or(Fault::sent_twice)) {
      case Fault::request_late:
      case Fault::answer_lost: return false;
      case Fault::answer_cut: send_all(m_client, half); return false;
      case Fault::answer_stuck:
        send_all(m_client, half);
        pause(m_relay.m_options.too_late);
        return false;
      case Fault::answer_dripped: drip(answer); return true;
      case Fault::answer_late: pause(m_relay.m_options.late); break;
      case Fault::answer_too_late: pause(m_relay.m_options.too_late); break;
      default: break;
    }
    return send_all(m_client, answer);
  }

  std::string execute(const std::string& request, bool twice)
  {
    const auto guard = lock_execution();
    const KeysSeen before = twice ? keys() : KeysSeen{};
    std::string answer = ask_server(request);
    const bool was_executed = is_script(request) && !answer.starts_with("-");
    if (twice && was_executed) {
      answer = ask_again(request, answer, before);
    }
    after_request();
    return answer;
  }

  // Empty: there is no answer.
  std::string ask_server(const std::string& request)
  {
    if (!send_all(m_server, request)) {
      return "";
    }
    std::array<pollfd, 2> waits{pollfd{.fd = m_server.get(), .events = POLLIN, .revents = 0},
                                pollfd{.fd = m_relay.m_over.token().fd(), .events = POLLIN, .revents = 0}};
    ::poll(waits.data(), waits.size(), -1);
    if (waits[0].revents == 0) {
      ::poll(waits.data(), 1, last_answer);
    }
    return waits[0].revents != 0 ? receive_some(m_server) : "";
  }

  [[nodiscard]] std::unique_lock<std::mutex> lock_execution() const
  {
    std::mutex* mutex = m_relay.m_options.executing;
    return mutex != nullptr ? std::unique_lock(*mutex) : std::unique_lock<std::mutex>();
  }

  [[nodiscard]] KeysSeen keys() const { return m_relay.m_options.keys ? m_relay.m_options.keys() : KeysSeen{}; }

  std::string ask_again(const std::string& request, const std::string& first, const KeysSeen& before)
  {
    const KeysSeen once = keys();
    std::string second = ask_server(request);
    const KeysSeen twice = keys();
    const std::lock_guard guard(m_relay.m_mutex);
    if (before.has_expired_at(twice.now_ms) || once.has_expired_at(twice.now_ms)) {
      m_relay.m_too_slow = "a key expired before the second of two requests was answered";
      return second;
    }
    if (essence(first) != essence(second)) {
      m_relay.m_differences.push_back("the second answer is \"" + second + "\" and the first was \"" + first +
                                      "\" to " + request);
    }
    if (once.text != twice.text) {
      m_relay.m_differences.push_back("the second request has changed\n" + once.text + "\nto\n" + twice.text + "\nby " +
                                      request);
    }
    return second;
  }

  void drip(std::string_view answer)
  {
    for (std::size_t i = 0; i < longest_drip && !answer.empty(); ++i) {
      send_all(m_client, answer.substr(0, 1));
      answer.remove_prefix(1);
      pause(drip_pause);
    }
    send_all(m_client, answer);
  }

  void pause(Millis time) const
  {
    const BootClock clock;
    clock.sleep_until(clock.now() + time, m_relay.m_over.token());
  }

  void look() const
  {
    const auto guard = lock_execution();
    after_request();
  }

  void after_request() const
  {
    if (m_relay.m_options.after_request) {
      m_relay.m_options.after_request();
    }
  }

  Relay& m_relay;
  const Fd m_client;
  Fd m_server;
  std::string m_unread;
  bool m_lasts;
};

Relay::Relay(std::filesystem::path server, RelayOptions options)
    : m_server(std::move(server)),
      m_path(make_temp_dir("relay") / "socket"),
      m_options(std::move(options)),
      m_listener(unix_listener(m_path))
{
  m_acceptor = std::thread([this] { accept_all(); });
}

Relay::Relay(const RedisServer& server) : Relay(server.socket_path(), {})
{
  skip_on_databases("there is no Redis behind the relay");
}

Relay::~Relay()
{
  m_over.request();
  m_acceptor.join();
  for (std::thread& session : m_sessions) {
    session.join();
  }
}

void Relay::set(std::optional<Fault> fault, std::string reply)
{
  const std::lock_guard guard(m_mutex);
  m_rules.clear();
  if (fault) {
    m_rules.push_back({.part = "", .fault = fault, .act = {}});
  }
  m_reply = std::move(reply);
}

void Relay::forward() { set(std::nullopt, ""); }

void Relay::answer(const std::string& reply) { set(Fault::answer_replaced, reply); }

void Relay::lose_answers() { set(Fault::answer_lost, ""); }

void Relay::hold_next(const std::string& part)
{
  const std::lock_guard guard(m_mutex);
  m_rules.push_front({.part = part, .fault = Fault::held, .act = {}, .once = true});
}

void Relay::before_next(const std::string& part, std::function<void()> act)
{
  const std::lock_guard guard(m_mutex);
  m_rules.push_front({.part = part, .fault = std::nullopt, .act = std::move(act), .once = true});
}

std::optional<Fault> Relay::apply_rules(std::string_view request)
{
  std::unique_lock guard(m_mutex);
  const auto found = std::find_if(m_rules.begin(), m_rules.end(),
                                  [&](const Rule& rule) { return request.find(rule.part) != std::string_view::npos; });
  if (found == m_rules.end()) {
    return std::nullopt;
  }
  const Rule rule = *found;
  if (rule.once) {
    m_rules.erase(found);
  }
  guard.unlock();
  if (rule.act) {
    rule.act();
  }
  return rule.fault;
}

bool Relay::holds() const
{
  const std::lock_guard guard(m_mutex);
  return !m_held.empty();
}

void Relay::deliver()
{
  const std::lock_guard guard(m_mutex);
  for (const Held& held : m_held) {
    REQUIRE(send_all(held.server, held.request));
    const std::string reply = receive_some(held.server);
    REQUIRE_FALSE(reply.empty());
    CHECK_MESSAGE(reply.front() != '-', reply.substr(0, 20));
  }
  m_held.clear();
}

std::vector<std::string> Relay::differences() const
{
  const std::lock_guard guard(m_mutex);
  return m_differences;
}

std::string Relay::too_slow() const
{
  const std::lock_guard guard(m_mutex);
  return m_too_slow;
}

void Relay::accept_all()
{
  const StopToken over = m_over.token();
  while (!over.requested()) {
    std::array<pollfd, 2> waits{pollfd{.fd = m_listener.get(), .events = POLLIN, .revents = 0},
                                pollfd{.fd = over.fd(), .events = POLLIN, .revents = 0}};
    ::poll(waits.data(), waits.size(), -1);
    if (waits[0].revents != 0) {
      Fd client(::accept4(m_listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
      m_sessions.emplace_back(
          [this, socket = std::move(client)]() mutable { Session(*this, std::move(socket)).run(); });
    }
  }
}

}  // namespace rlock::test
