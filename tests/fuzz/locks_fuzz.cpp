// SPDX-License-Identifier: Apache-2.0
// Holders and waiters as a hostile server stores them, to every output. Input: a digit for the kind of lock; lines with the key,
// ttl, fence, count, the times of `once`; then the records of holders and waiters, each an owner and a record between NUL bytes.
#include "engine/script_reply.h"
#include "fuzz/fuzzer.h"
#include "fuzz/shown.h"

namespace rlock::test {
namespace {

void promise_holder_codec(std::string_view text)
{
  const auto first = decode_holder(text);
  if (!first) {
    return;
  }
  const std::string stored = encode(*first);
  const auto again = decode_holder(stored);
  promise(again && encode(*again) == stored, "a record that is decoded and encoded stays the same", stored);
}

LockKind mode_of(Input& input)
{
  switch (input.choice(5)) {
    case 1: return Reader{};
    case 2: return Writer{};
    case 3: return Permits{static_cast<unsigned>(input.choice(200))};
    case 4: return StringLock{};
    default: return Plain{};
  }
}

std::optional<Millis> ttl_of(Input& input)
{
  const std::int64_t ms = input.number();
  return ms < 0 ? std::nullopt : std::optional(Millis{plausible_ms(ms)});
}

}  // namespace

void fuzz_locks(std::string_view bytes)
{
  Input input(bytes);
  const LockKind kind = mode_of(input);
  const auto name = LockName::parse(input.line());
  if (!name) {
    promise_error(name.error());
    return;
  }
  LockState state{.name = *name,
                  .kind = kind,
                  .ttl = ttl_of(input),
                  .fence = static_cast<std::uint64_t>(input.number()),
                  .holders = {},
                  .waiting = {}};
  state.count = static_cast<std::uint64_t>(input.number());
  if (const std::int64_t at = input.number(); at != 0) {
    state.once = OnceSuccess{.at_ms = at,
                             .remembered_for = Millis{plausible_ms(input.number())},
                             .ago = Millis{plausible_ms(input.number())}};
  }
  while (!input.empty()) {
    const std::size_t where = input.choice(3);
    const Owner owner = Owner::of(std::string(input.until('\0')));
    const std::string_view record = input.until('\0');
    promise_holder_codec(record);
    const auto info = decode_holder(record);
    if (where == 1) {
      state.waiting.push_back({.owner = owner, .info = info});
    } else {
      (where == 0 ? state.holders : state.partial)
          .push_back({.owner = owner, .count = static_cast<std::int64_t>(where), .info = info});
    }
  }
  promise_shown(state);
}

}  // namespace rlock::test
