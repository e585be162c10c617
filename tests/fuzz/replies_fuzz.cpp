// SPDX-License-Identifier: Apache-2.0
// RESP from a server, to the codec and to everything that interprets the replies of scripts. Input: a letter for the request, a
// digit for the kind of lock, and the bytes that the server sends.
#include "fuzz/fuzzer.h"
#include "fuzz/recorded_server.h"
#include "fuzz/shown.h"
#include "lock/lock_candidates.h"
#include "redis/codec.h"
#include "redis/redis_store.h"
#include "redis/scan.h"

#include <array>
#include <chrono>

namespace rlock::test {
namespace {

using namespace std::chrono_literals;

// A reply as a server would write it.
std::string printed(const Reply& reply)
{
  switch (reply.kind) {
    case Reply::Kind::nil: return "$-1\r\n";
    case Reply::Kind::integer: return ":" + std::to_string(reply.integer) + "\r\n";
    case Reply::Kind::error: return "-" + reply.text + "\r\n";
    case Reply::Kind::text: return "$" + std::to_string(reply.text.size()) + "\r\n" + reply.text + "\r\n";
    case Reply::Kind::array: break;
  }
  std::string all = "*" + std::to_string(reply.elements.size()) + "\r\n";
  for (const Reply& element : reply.elements) {
    all += printed(element);
  }
  return all;
}

struct Decoded {
  std::vector<Reply> replies;
  bool failed = false;
};

Decoded decoded(std::string_view bytes, std::size_t part)
{
  Decoder decoder;
  Decoded all;
  while (!all.failed && !bytes.empty()) {
    decoder.feed(bytes.substr(0, part));
    bytes.remove_prefix(std::min(part, bytes.size()));
    for (bool more = true; more && !all.failed;) {
      auto reply = decoder.next();
      all.failed = !reply;
      more = reply && *reply;
      if (more) {
        all.replies.push_back(**std::move(reply));
      }
    }
  }
  return all;
}

void promise_same(const Decoded& one, const Decoded& other)
{
  promise(one.failed == other.failed && one.replies == other.replies, "a reply does not depend on how it is cut");
}

void promise_codec(std::string_view bytes)
{
  const Decoded whole = decoded(bytes, bytes.size());
  promise_same(whole, decoded(bytes, 1));
  promise_same(whole, decoded(bytes, 7));
  for (const Reply& reply : whole.replies) {
    const Decoded again = decoded(printed(reply), 64);
    promise(again.replies == std::vector{reply}, "a reply that is printed and decoded is the same");
  }
}

struct Asking {
  RedisStore& store;
  LockSpec spec;
  Owner owner = Owner::of("8743c9c0:1");

  [[nodiscard]] PerAnswer limits() const { return {standing_clock, 10s, limit}; }
};

template <typename T>
bool is_there(const Result<T>& result)
{
  if (!result) {
    promise_error(result.error());
  }
  return bool(result);
}

void promise_not_held(const NotHeld& lost) { promise_one_line(text_of(lost)); }

void promise_busy(const Asking& asking, const Busy& busy)
{
  OnesRng rng;
  LockCandidate candidate{.spec = asking.spec, .which = 0};
  candidate.refused(busy, {.queues = true}, standing_clock.now(), rng);
  const Instant due = candidate.due_at();
  promise(due >= standing_clock.now() && due < standing_clock.now() + 1min,
          "a waiter asks again soon, and not at once");
  if (busy.holder) {
    promise_shown({.name = asking.spec.name,
                   .kind = asking.spec.kind,
                   .ttl = busy.ttl,
                   .fence = busy.ticket,
                   .holders = {*busy.holder},
                   .waiting = {}});
  }
}

void ask_acquire(const Asking& asking)
{
  const auto attempt = asking.store.acquire(asking.spec, asking.owner, {.queues = true}, limit);
  if (is_there(attempt)) {
    if (const auto* busy = std::get_if<Busy>(&*attempt)) {
      promise_busy(asking, *busy);
    }
  }
}
void ask_reenter(const Asking& asking)
{
  const auto entered = asking.store.reenter(asking.spec, asking.owner, limit);
  if (is_there(entered) && std::holds_alternative<NotHeld>(*entered)) {
    promise_not_held(std::get<NotHeld>(*entered));
  }
}
void ask_renew(const Asking& asking)
{
  const auto renewal = asking.store.renew(asking.spec, asking.owner, {}, limit);
  if (is_there(renewal) && std::holds_alternative<NotHeld>(*renewal)) {
    promise_not_held(std::get<NotHeld>(*renewal));
  }
}
void ask_release(const Asking& asking)
{
  const std::array<const LockSpec*, 2> specs{&asking.spec, &asking.spec};
  auto releases = asking.store.release_each(specs, asking.owner, limit);
  releases.push_back(asking.store.release(asking.spec, asking.owner, {}, limit));
  for (const auto& release : releases) {
    if (is_there(release) && std::holds_alternative<NotHeld>(*release)) {
      promise_not_held(std::get<NotHeld>(*release));
    }
  }
}
void ask_inspect(const Asking& asking)
{
  const auto state = asking.store.inspect(asking.spec.name, limit);
  if (is_there(state)) {
    promise_shown(*state);
  }
}
void ask_list(const Asking& asking)
{
  const auto states = asking.store.list("*", asking.limits());
  if (is_there(states)) {
    for (const LockState& state : *states) {
      promise_shown(state);
    }
  }
}
void ask_force(const Asking& asking)
{
  const auto answer =
      asking.store.force(ForceStep::ask, {asking.spec.name, asking.spec.kind, asking.owner, "alice", 10s}, limit);
  if (is_there(answer)) {
    if (const auto* held = std::get_if<ForceHeld>(&*answer)) {
      promise_one_line("by " + describe(held->holder));
    }
  }
}
void ask_events(const Asking& asking)
{
  const auto names = asking.store.find_logs("*", asking.limits());
  const std::array<EventLogQuery, 1> queries{EventLogQuery{asking.spec.name, ""}};
  const auto logs = asking.store.read_logs(queries, limit);
  if (!is_there(names) || !is_there(logs)) {
    return;
  }
  EventLogReader reader;
  for (LockEvent& event : reader.read(logs->front())) {
    promise_shown(cli::ShownEvent{asking.spec.name, std::move(event)});
  }
}
void ask_rest(const Asking& asking)
{
  is_there(asking.store.await_replicas(asking.spec, limit));
  is_there(asking.store.marker({}, limit));
  is_there(asking.store.raise_fence(asking.spec, asking.owner, 7, limit));
  is_there(asking.store.is_queued(asking.spec, asking.owner, limit));
  is_there(asking.store.forget_success(asking.spec.name, limit));
}

constexpr std::array requests{ask_acquire, ask_reenter, ask_renew,  ask_release, ask_inspect,
                              ask_list,    ask_force,   ask_events, ask_rest};

LockKind mode_number(std::size_t number)
{
  const std::array<LockKind, 5> modes{Plain{}, Reader{}, Writer{}, Permits{2}, StringLock{}};
  return modes[number];
}

}  // namespace

void fuzz_replies(std::string_view bytes)
{
  Input input(bytes);
  const auto request = requests[input.choice(requests.size())];
  const LockKind kind = mode_number(input.choice(5));
  promise_codec(input.rest());
  RedisStore store(std::make_unique<RecordedServer>(replies_in(input.rest())), standing_clock);
  request({.store = store,
           .spec = {.name = *LockName::parse("stock"),
                    .kind = kind,
                    .ttl = 30s,
                    .who = {},
                    .once = std::nullopt,
                    .sync = {.replicas = 1, .within = 1s}}});
}

}  // namespace rlock::test
