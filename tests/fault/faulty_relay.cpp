// SPDX-License-Identifier: Apache-2.0
#include "fault/faulty_relay.h"

#include "net/codec.h"
#include "support/sockets.h"
#include "support/temp_dir.h"

#include <array>
#include <charconv>
#include <utility>

#include <poll.h>
#include <sys/socket.h>

namespace rlock::test {
namespace {

constexpr Millis drip_pause{1};
constexpr std::size_t longest_drip = 40;  // bytes; the rest comes at once

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

}  // namespace

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

// One connection of a client. Lives on a thread of its own, so every fault is a few plain statements.
class FaultyRelay::Session {
 public:
  Session(FaultyRelay& relay, Fd client)
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
      m_lasts = handle(request, m_relay.m_options.fails ? m_relay.m_plan.next() : std::nullopt);
    }
  }

  // False: the connection is cut.
  bool handle(const std::string& request, std::optional<Fault> fault)
  {
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
    const std::lock_guard guard(m_relay.m_plan.executing());
    const KeysSeen before = twice ? keys() : KeysSeen{};
    std::string answer = ask_server(request);
    const bool was_executed = is_script(request) && !answer.starts_with("-");
    if (twice && was_executed) {
      answer = ask_again(request, answer, before);
    }
    after_request();
    return answer;
  }

  std::string ask_server(const std::string& request)
  {
    return send_all(m_server, request) ? receive_some(m_server) : "";
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
    const std::lock_guard guard(m_relay.m_plan.executing());
    after_request();
  }

  void after_request() const
  {
    if (m_relay.m_options.after_request) {
      m_relay.m_options.after_request();
    }
  }

  FaultyRelay& m_relay;
  const Fd m_client;
  const Fd m_server;
  std::string m_unread;
  bool m_lasts;
};

FaultyRelay::FaultyRelay(std::filesystem::path server, FaultPlan& plan, FaultyRelayOptions options)
    : m_server(std::move(server)),
      m_path(make_temp_dir("faulty") / "socket"),
      m_plan(plan),
      m_options(std::move(options)),
      m_listener(unix_listener(m_path))
{
  m_acceptor = std::thread([this] { accept_all(); });
}

FaultyRelay::~FaultyRelay()
{
  m_over.request();
  m_acceptor.join();
  for (std::thread& session : m_sessions) {
    session.join();
  }
}

std::vector<std::string> FaultyRelay::differences() const
{
  const std::lock_guard guard(m_mutex);
  return m_differences;
}

std::string FaultyRelay::too_slow() const
{
  const std::lock_guard guard(m_mutex);
  return m_too_slow;
}

void FaultyRelay::accept_all()
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
