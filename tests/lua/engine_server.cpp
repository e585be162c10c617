// SPDX-License-Identifier: Apache-2.0
// rlock_engine_server: a server on the unix socket redis.sock of the working directory, which runs the scripts as the record engine
// does: it reads the record, runs the script on it, and writes it back. With RLOCK_TEST_SERVER it stands in place of redis-server
// for the cases of tests/lua. One record has all keys. Of Redis it knows only what these cases need; redis_alone.txt lists the cases
// that need more.
#include "base/fd.h"
#include "base/fields.h"
#include "base/log.h"
#include "engine/lock_keys.h"
#include "engine/record_host.h"
#include "lua/scripts.h"
#include "support/bare_backend.h"
#include "support/redis_protocol.h"

#include <algorithm>
#include <array>
#include <deque>
#include <iostream>
#include <iterator>
#include <map>
#include <set>
#include <span>

#include <fnmatch.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace rlock::test {
namespace {

using namespace record;

using Texts = std::vector<std::string>;

bool matches(const std::string& pattern, const std::string& name)
{
  return ::fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
}

// Reads the arguments of a script back into the fields of its call.
class Arguments {
 public:
  explicit Arguments(std::span<const std::string> words) : m_words(words) {}

  template <typename Call>
  Call call()
  {
    Call call{};
    std::apply([&](auto&... fields) { (read(fields), ...); }, fields_of(call));
    return call;
  }

 private:
  std::string next()
  {
    const std::string word = m_words.empty() ? "" : m_words.front();
    m_words = m_words.empty() ? m_words : m_words.subspan(1);
    return word;
  }
  void read(std::string& field) { field = next(); }
  void read(std::int64_t& field) { field = std::stoll(next()); }
  void read(Millis& field) { field = Millis{std::stoll(next())}; }
  void read(std::optional<Millis>& field)
  {
    const std::string word = next();
    field = word.empty() ? std::nullopt : std::optional(Millis{std::stoll(word)});
  }
  void read(calls::Tail<std::string>& field)
  {
    if (!m_words.empty()) {
      field = next();
    }
  }
  void read(calls::Tail<calls::ReleasedRun>& field)
  {
    if (!m_words.empty()) {
      field = call<calls::ReleasedRun>();
    }
  }

  std::span<const std::string> m_words;
};

LockKind kind_of_script(std::string_view name, const std::string& mode)
{
  if (name.starts_with("rw_")) {
    return mode == reader_mode ? LockKind(Reader{}) : Writer{};
  }
  return name.starts_with("permits_")  ? LockKind(Permits{static_cast<unsigned>(std::stoul(mode))})
         : name.starts_with("string_") ? LockKind(StringLock{})
                                       : Plain{};
}

// With the verb, where the engine does more for it than to run its script.
ScriptRequest request_of(ScriptCall call)
{
  const std::string_view name = call.script.name;
  const bool releases = name.ends_with("_release");
  if (!releases && !name.ends_with("_inspect")) {
    return call;
  }
  const auto every = Arguments(call.args).call<calls::Every>();
  Arguments own(std::span(call.args).subspan(calls::Every::size));
  return VerbRequest{.lock = *LockName::parse(call.keys.front()),
                     .kind = kind_of_script(name, every.requested_mode),
                     .owner = Owner::of(every.owner),
                     .verb = releases ? calls::Verb(own.call<calls::Release>()) : own.call<calls::Inspect>()};
}

struct Connection {
  Fd socket;
  std::string unread;
  std::set<std::string> channels;
};

// The one record, and the clients that listen.
struct Store {
  std::uint64_t version = 0;
  std::string bytes;
  std::map<std::int64_t, std::string> events;
  std::deque<Connection> connections;

  int publish(const std::string& channel, const std::string& message)
  {
    const std::string sent = encoded(Reply::list({"message", channel, message}));
    int heard = 0;
    for (const Connection& each : connections) {
      if (each.channels.contains(channel)) {
        ::send(each.socket.get(), sent.data(), sent.size(), MSG_NOSIGNAL);
        ++heard;
      }
    }
    return heard;
  }
};

class StoreBackend final : public BareBackend {
 public:
  explicit StoreBackend(Store& store) : m_store(store) {}

  Result<Snapshot> read(std::string_view, const CallLimits&) override
  {
    Snapshot state{.version = std::to_string(m_store.version),
                   .bytes = m_store.bytes,
                   .time_us = std::chrono::duration_cast<std::chrono::microseconds>(
                                  std::chrono::system_clock::now().time_since_epoch())
                                  .count(),
                   .listeners = {}};
    for (const Connection& each : m_store.connections) {
      state.listeners.insert(state.listeners.end(), each.channels.begin(), each.channels.end());
    }
    return state;
  }
  Result<Commit> write_if(std::string_view, const Version& version, const Change& change, const CallLimits&) override
  {
    if (version != std::to_string(m_store.version)) {
      return Commit{Conflict{}};
    }
    ++m_store.version;
    m_store.bytes = change.bytes;
    if (change.log.first_kept) {
      m_store.events.erase(m_store.events.begin(), m_store.events.lower_bound(*change.log.first_kept));
    }
    if (change.log.last_kept) {
      m_store.events.erase(m_store.events.upper_bound(*change.log.last_kept), m_store.events.end());
    }
    for (const LoggedEvent& event : change.log.written) {
      m_store.events[event.id] = event.entry;
    }
    for (const Message& message : change.messages) {
      m_store.publish(message.channel, message.text);
    }
    return Commit{Committed{std::to_string(m_store.version)}};
  }
  Result<Texts> events(std::string_view, const CallLimits&) override
  {
    Texts entries;
    for (const auto& [id, entry] : m_store.events) {
      entries.push_back(entry);
    }
    return entries;
  }

 private:
  Store& m_store;
};

class EngineServer {
 public:
  EngineServer() : m_host(std::make_unique<StoreBackend>(m_store), m_clock, std::make_unique<SystemRng>()) {}

  [[noreturn]] void serve(Fd listener)
  {
    for (;;) {
      std::vector<pollfd> waits{{.fd = listener.get(), .events = POLLIN, .revents = 0}};
      for (const Connection& each : m_store.connections) {
        waits.push_back({.fd = each.socket.get(), .events = POLLIN, .revents = 0});
      }
      ::poll(waits.data(), waits.size(), -1);
      for (std::size_t i = waits.size() - 1; i > 0; --i) {
        if (waits[i].revents != 0) {
          read(i - 1);
        }
      }
      if (waits[0].revents != 0) {
        m_store.connections.push_back(
            {.socket = Fd(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC)), .unread = {}, .channels = {}});
      }
    }
  }

 private:
  void read(std::size_t which)
  {
    Connection& from = m_store.connections[which];
    std::array<char, 65536> bytes;  // NOLINT(*-member-init): recv fills it
    const ssize_t count = ::recv(from.socket.get(), bytes.data(), bytes.size(), 0);
    if (count <= 0) {
      m_store.connections.erase(m_store.connections.begin() + static_cast<std::ptrdiff_t>(which));
      m_host.drop_connection();  // forgets who listened
      return;
    }
    from.unread.append(bytes.data(), static_cast<std::size_t>(count));
    for (Texts words = take_request(from.unread); !words.empty(); words = take_request(from.unread)) {
      const std::string answer = words[0] == "SUBSCRIBE" ? subscribe(from, words) : encoded(execute(words));
      ::send(from.socket.get(), answer.data(), answer.size(), MSG_NOSIGNAL);
    }
  }

  std::string subscribe(Connection& connection, const Texts& words)
  {
    std::string answer;
    for (std::size_t i = 1; i < words.size(); ++i) {
      connection.channels.insert(words[i]);
      Reply one = Reply::list({"subscribe", words[i]});
      one.elements.push_back(Reply::of(static_cast<std::int64_t>(connection.channels.size())));
      answer += encoded(one);
    }
    ++m_store.version;
    m_host.drop_connection();
    return answer;
  }

  Reply execute(const Texts& words)
  {
    const std::string& command = words[0];
    if (command == "EVAL" || command == "EVALSHA") {
      return run(words);
    }
    if (command == "HELLO") {
      return Reply::list({"role", "master"});
    }
    if (command == "PING") {
      return Reply::of("PONG");
    }
    if (command == "PUBLISH") {
      return Reply::of(m_store.publish(words.at(1), words.at(2)));
    }
    if (command == "PUBSUB" && words.at(1) == "CHANNELS") {
      return Reply::list(channels(words.size() > 2 ? words[2] : "*"));
    }
    if (command == "FLUSHALL") {
      m_store.bytes.clear();
      m_store.events.clear();
      ++m_store.version;
      m_host.drop_connection();
      return Reply::of("OK");
    }
    return about_keys(words);
  }

  Texts channels(const std::string& pattern) const
  {
    std::set<std::string> all;
    for (const Connection& each : m_store.connections) {
      std::ranges::copy_if(each.channels, std::inserter(all, all.end()),
                           [&](const std::string& channel) { return matches(pattern, channel); });
    }
    return {all.begin(), all.end()};
  }

  // Commands of tests that the scripts do not use.
  Reply about_keys(const Texts& words)
  {
    const std::string& command = words[0];
    if (command == "KEYS" || command == "DBSIZE") {
      Texts names;
      for (const auto& [key, entry] : keys()) {
        if (command == "DBSIZE" || matches(words.at(1), key)) {
          names.push_back(key);
        }
      }
      return command == "KEYS" ? Reply::list(names) : Reply::of(static_cast<std::int64_t>(names.size()));
    }
    if (command == "DUMP") {
      auto all = keys();
      const auto key = all.find(words.at(1));
      return key == all.end() ? Reply{} : Reply::of(encode({.keys = {{key->first, {key->second.data, {}}}}}));
    }
    if (command == "PERSIST") {
      const auto had_end = on_keys({"PTTL", words.at(1)}).integer >= 0;
      if (had_end) {
        persist(words.at(1));
      }
      return Reply::of(had_end ? 1 : 0);
    }
    if (command == "SETNX") {
      return Reply::of(on_keys({"SET", words.at(1), words.at(2), "NX"}).kind == Reply::Kind::nil ? 0 : 1);
    }
    if (command == "LLEN") {
      return Reply::of(static_cast<std::int64_t>(log(words.at(1)).size()));
    }
    if (command == "LRANGE" && words.at(1).starts_with("rlock:events:")) {
      KeySpace whole;
      whole.replace({{words[1], Entry{log(words[1]), {}}}});
      return whole.command(words);
    }
    return on_keys(words);
  }

  KeySpace::Keys keys()
  {
    KeySpace space;
    space.replace(decode(m_store.bytes)->keys);
    space.set_time(StoreBackend(m_store).read({}, limit())->time_us);
    return space.keys();
  }

  void persist(const std::string& key)
  {
    auto record = *decode(m_store.bytes);
    record.keys.at(key).expires.reset();
    m_store.bytes = encode(record);
    ++m_store.version;
    m_host.drop_connection();
  }

  // The whole event log, of which the record has the last entries; or another list.
  Texts log(const std::string& key)
  {
    const auto all = keys();
    const auto found = all.find(key);
    if (found == all.end()) {
      return {};
    }
    return key == LockKeys(m_lock).events ? *StoreBackend(m_store).events({}, limit())
                                          : std::get<List>(found->second.data);
  }

  Reply on_keys(const Texts& words)
  {
    const std::vector<std::string_view> argv(words.begin(), words.end());
    return answer(m_host.command(m_lock, argv, limit()));
  }

  Reply run(const Texts& words)
  {
    const auto count = static_cast<std::ptrdiff_t>(std::stoul(words.at(2)));
    const auto args = words.begin() + 3 + count;
    const ScriptCall call{script_of(words), {words.begin() + 3, args}, {args, words.end()}};
    return answer(m_host.run(request_of(call), limit()));
  }

  const Script& script_of(const Texts& words)
  {
    const auto* const known = std::ranges::find_if(scripts::all, [&](const Script* each) {
      return words[0] == "EVALSHA" ? each->sha1 == words.at(1) : each->source() == words.at(1);
    });
    if (known != std::end(scripts::all)) {
      return **known;
    }
    const auto other = std::ranges::find(m_others, words.at(1), [](const Other& each) { return each.source; });
    if (other != m_others.end()) {
      return other->script;
    }
    Other& added = m_others.emplace_back();
    added.source = words.at(1);
    added.name = "script " + std::to_string(m_others.size());
    added.block = added.source;
    added.script = {
        .name = added.name, .blocks = &added.block, .order = std::string_view("\0", 1), .sha1 = {}, .first_part = 1};
    return added.script;
  }

  // An error as the script has raised it.
  static Reply answer(const Result<Reply>& result)
  {
    if (result) {
      return *result;
    }
    const std::string& all = result.error().text;
    const auto wrong_type = all.find("WRONGTYPE");
    return Reply::error(wrong_type == std::string::npos ? "ERR " + all : all.substr(wrong_type));
  }

  [[nodiscard]] CallLimits limit() const
  {
    return {.deadline = m_clock.now() + std::chrono::seconds(5), .stop = StopToken::never()};
  }

  // A script that is none of lua/.
  struct Other {
    std::string source;
    std::string name;
    std::string_view block;
    Script script{};
  };

  BootClock m_clock;
  Store m_store;
  LockName m_lock = *LockName::parse("k");
  RecordHost m_host;
  std::deque<Other> m_others;
};

Fd listen_on_socket()
{
  Fd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::string_view("redis.sock").copy(address.sun_path, sizeof address.sun_path - 1);
  if (::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(listener.get(), 64) != 0) {
    std::cerr << "cannot listen on redis.sock\n";
    std::exit(1);
  }
  return listener;
}

}  // namespace
}  // namespace rlock::test

int main(int argc, char**)
{
  if (argc != 2) {
    std::cerr << "the engine has none of the settings of Redis\n";
    return 1;
  }
  rlock::test::EngineServer().serve(rlock::test::listen_on_socket());
}
