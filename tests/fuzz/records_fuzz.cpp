// SPDX-License-Identifier: Apache-2.0
// The bytes that a store has as the record of a lock. Input: a digit for the kind of lock, one for the verb, one that says whether
// somebody listens; then the record.
#include "engine/lock_keys.h"
#include "engine/record_codec.h"
#include "engine/record_host.h"
#include "engine/script_store.h"
#include "fuzz/fuzzer.h"
#include "fuzz/shown.h"
#include "support/bare_backend.h"

#include <algorithm>
#include <array>

namespace rlock::test {
namespace {

using namespace std::chrono_literals;
using namespace record;

constexpr std::array<std::string_view, 2> own_formats{"rlock1\n", "rlock2\n"};

// A store with one record, which nobody else changes.
struct OneRecord {
  std::string bytes;
  bool is_listened_to;
  int writes = 0;
};

class OneRecordBackend final : public BareBackend {
 public:
  explicit OneRecordBackend(OneRecord& record) : m_record(record) {}

  Result<Snapshot> read(std::string_view name, const CallLimits&) override
  {
    Snapshot state{.version = "1", .bytes = m_record.bytes, .time_us = noon * 1000, .listeners = {}};
    if (m_record.is_listened_to) {
      state.listeners = {LockKeys(*LockName::parse(name)).owner_channel + "8743c9c0:2"};
    }
    return state;
  }
  Result<Commit> write_if(std::string_view, const Version&, const Change& change, const CallLimits&) override
  {
    promise(change.bytes.size() <= longest_record, "a record is no longer than its limit");
    promise(bool{decode(change.bytes)}, "a record that is written can be read");
    for (const LoggedEvent& event : change.log.written) {
      promise(event.id > 0, "the ids of the log rise from 1");
    }
    m_record.bytes = change.bytes;
    ++m_record.writes;
    return Commit{Committed{"2"}};
  }

 private:
  OneRecord& m_record;
};

void check_codec(std::string_view bytes)
{
  const auto record = decode(bytes);
  if (!record) {
    promise(record.error().code == ErrorCode::config, "a record that cannot be read is a matter of configuration");
    promise_error(record.error());
    return;
  }
  const bool is_own =
      std::ranges::any_of(own_formats, [&](std::string_view format) { return bytes.starts_with(format); });
  promise(bytes.empty() || is_own, "a record of an unknown format is refused");
  const std::string again = encode(*record);
  promise(again.size() <= bytes.size(), "a record does not grow when it is written as it is");
  const auto same = decode(again);
  promise(same && encode(*same) == again, "what was encoded is decoded");
}

template <typename Answer>
void promise_answer(const Result<Answer>& answer, const OneRecord& record)
{
  if (!answer) {
    promise_error(answer.error());
    promise(record.writes == 0, "a request that fails changes nothing");
  }
}

void ask(ScriptStore& store, std::size_t verb, const LockKind& kind, const OneRecord& record)
{
  static const BootClock clock;
  const CallLimits limit{.deadline = clock.now() + 60s, .stop = StopToken::never()};
  const LockSpec request{.name = *LockName::parse("stock"), .kind = kind, .ttl = 30s, .who = {}, .once = 1h};
  const Owner owner = Owner::of("8743c9c0:1");
  switch (verb) {
    case 0: return promise_answer(store.acquire(request, owner, {.queues = true}, limit), record);
    case 1: return promise_answer(store.acquire(request, owner, {}, limit), record);
    case 2: return promise_answer(store.renew(request, owner, {}, limit), record);
    case 3: return promise_answer(store.release(request, Hold{owner}, {}, limit), record);
    default: break;
  }
  const auto state = store.inspect(request.name, limit);
  promise_answer(state, record);
  promise(record.writes == 0, "asking never writes");
  if (state) {
    promise_shown(*state);
  }
}

}  // namespace

void fuzz_records(std::string_view bytes)
{
  static const BootClock clock;
  Input input(bytes);
  const std::array<LockKind, 5> kinds{Plain{}, Reader{}, Writer{}, Permits{2}, StringLock{}};
  const LockKind kind = kinds[input.choice(kinds.size())];
  const std::size_t verb = input.choice(5);
  OneRecord record{.bytes = {}, .is_listened_to = input.flag()};
  record.bytes = input.rest();
  check_codec(record.bytes);
  auto host =
      std::make_unique<RecordHost>(std::make_unique<OneRecordBackend>(record), clock, std::make_unique<SystemRng>());
  ScriptStore store(std::move(host), clock);
  ask(store, verb, kind, record);
}

}  // namespace rlock::test
