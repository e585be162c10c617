// SPDX-License-Identifier: Apache-2.0
#include "support/hostile_server.h"

#include <algorithm>
#include <utility>

#include <sys/socket.h>

namespace rlock::test {
namespace {

constexpr std::string_view role_question = "*2\r\n$5\r\nHELLO\r\n$1\r\n2\r\n";  // stands before a first request

constexpr std::size_t burst = 1 << 16;  // bytes of a send that repeats a text

std::string repeated(const std::string& text)
{
  std::string much;
  while (much.size() < burst) {
    much += text;
  }
  return much;
}

void say_for_ever(const Peer& peer, const std::string& text)
{
  const std::string much = repeated(text);
  while (peer.say(much) && peer.lasts(Millis{0})) {
  }
}

}  // namespace

Behavior says(std::string bytes)
{
  return [bytes = std::move(bytes)](const Peer& peer) {
    peer.say(bytes);
    peer.lasts(plenty);
  };
}

Behavior says_for_ever(std::string head, std::string again)
{
  return [head = std::move(head), again = std::move(again)](const Peer& peer) {
    peer.say(head);
    say_for_ever(peer, again);
  };
}

Behavior drips(std::string bytes)
{
  return [bytes = std::move(bytes)](const Peer& peer) {
    for (std::size_t i = 0; peer.lasts(Millis{20}); ++i) {
      peer.say(bytes.substr(i % bytes.size(), 1));
    }
  };
}

Behavior answers_with(std::string reply) { return answers_by_word({{.word = "", .reply = std::move(reply)}}); }

Behavior answers_by_word(std::vector<Answer> list)
{
  return [list = std::move(list)](const Peer& peer) {
    for (std::string request = peer.hear_some(); !request.empty(); request = peer.hear_some()) {
      if (request.starts_with(role_question) && request.size() > role_question.size()) {
        peer.say("-ERR unknown command 'HELLO'\r\n");
        request.erase(0, role_question.size());
      }
      const auto answer = std::find_if(
          list.begin(), list.end(), [&](const Answer& each) { return request.find(each.word) != std::string::npos; });
      if (answer != list.end() && answer->for_ever) {
        say_for_ever(peer, answer->reply);
      } else if (answer != list.end() && !answer->reply.empty()) {
        peer.say(answer->reply);
      }
    }
  };
}

HostileServer::HostileServer(Behavior script, Endpoint::Kind kind)
    : m_listener(listening_socket(kind, m_endpoint)), m_script(std::move(script)), m_thread([this] { accept_all(); })
{
}

HostileServer::HostileServer(const std::function<Behavior(std::uint16_t)>& script)
    : m_listener(listening_socket(Endpoint::Kind::tcp, m_endpoint)),
      m_script(script(m_endpoint.port)),
      m_thread([this] { accept_all(); })
{
}

HostileServer::~HostileServer()
{
  m_over = true;
  ::shutdown(m_listener.get(), SHUT_RDWR);
  m_thread.join();
}

// Each client has ended when the server does, so the scripts end as well.
void HostileServer::accept_all()
{
  for (;;) {
    Fd next(::accept4(m_listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!next) {
      break;
    }
    m_peers.emplace_back([this, peer = Peer(std::move(next), m_over)] { m_script(peer); });
  }
  for (std::thread& peer : m_peers) {
    peer.join();
  }
}

}  // namespace rlock::test
