// SPDX-License-Identifier: Apache-2.0
#include "engine/script_store.h"

#include "base/defaults.h"
#include "base/text.h"
#include "engine/lock_keys.h"
#include "engine/script_reply.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <iterator>
#include <utility>

namespace rlock {
namespace {

constexpr std::string_view look = "look ";
constexpr std::string_view claim = "claim ";
constexpr std::string_view quick = " quick";  // behind a claim
constexpr std::string_view watch = "watch ";
constexpr std::string_view next = "next ";
constexpr std::string_view yours = "yours ";
constexpr std::string_view taken_back = "00";  // an attempt of a quorum, which is no news for other rlock processes
constexpr int most_at_once = 1'000;            // messages; a flood of them must not keep the caller from its renewals

// "look MS" means: not earlier.
Millis delay_of(std::string_view text, std::string_view word)
{
  std::int64_t ms = 0;
  if (text.starts_with(word)) {
    text.remove_prefix(word.size());
    ms = leading_number(text);
  }
  return Millis{std::clamp<std::int64_t>(ms, 0, look_again_after.count())};
}

// "yours FENCE TIME MS". nullopt: none of that form.
std::optional<Handover> handover_in(std::string_view text)
{
  if (!text.starts_with(yours)) {
    return std::nullopt;
  }
  text.remove_prefix(yours.size());
  std::array<std::int64_t, 3> numbers{};
  for (std::int64_t& number : numbers) {
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
    if (parsed.ec != std::errc{} || number <= 0 || number > latest_time.count()) {
      return std::nullopt;
    }
    text.remove_prefix(static_cast<std::size_t>(parsed.ptr - text.data()));
    text.remove_prefix(text.starts_with(' ') ? 1 : 0);
  }
  const auto [fence, time, ms] = numbers;
  return Handover{.fence = static_cast<std::uint64_t>(fence),
                  .at = ServerTime{time},
                  .lease = std::min(Millis{ms}, handover_confirmation)};
}

// Any unknown message makes the waiter ask at once: foreign clients announce releases in many ways.
void add_message(Hint& hint, std::string_view text)
{
  if (text == "next" || text.starts_with(next)) {
    hint.next = true;
    hint.confirm_within = text.starts_with(next) ? std::optional(delay_of(text, next)) : std::nullopt;
  } else if (text.starts_with(claim)) {
    hint.next = true;
    hint.quick = text.ends_with(quick);
    hint.confirm_within = delay_of(text, claim);
  } else if (text.starts_with(watch)) {
    hint.confirm_within = delay_of(text, watch);
  } else if (text != taken_back) {
    const bool is_only_reason_to_ask = !hint.look_in || hint.handover;
    hint.handover = is_only_reason_to_ask ? handover_in(text) : std::nullopt;
    const Millis in = delay_of(text, look);
    hint.look_in = hint.look_in ? std::min(*hint.look_in, in) : in;
  }
}

// The channels of one lock that concern one owner.
struct Channels {
  std::string name;  // of the lock
  std::string own;
  std::string releases;       // empty: no client announces a release
  std::string done;           // announces a success for `rlock once`; empty: not wanted
  std::string taken;          // announces a grant that found no holder
  std::string owner_channel;  // the own one without its owner
  bool is_exclusive;
  bool hears_takings = false;
  bool hears_releases = false;

  [[nodiscard]] bool have(const std::string& channel) const
  {
    return channel == own || channel == releases || channel == done || channel == taken;
  }
};

class ScriptListener final : public Listener {
 public:
  ScriptListener(std::unique_ptr<MessageSource> source, std::vector<Channels> locks,
                 std::shared_ptr<ReleaseSubscriptions> release_subscriptions)
      : m_source(std::move(source)),
        m_locks(std::move(locks)),
        m_release_subscriptions(std::move(release_subscriptions))
  {
  }
  ~ScriptListener() override
  {
    for (const Channels& lock : m_locks) {
      m_release_subscriptions->add(lock.name, lock.hears_releases ? -1 : 0);
    }
  }
  ScriptListener(const ScriptListener&) = delete;
  ScriptListener& operator=(const ScriptListener&) = delete;

  [[nodiscard]] int fd() const override { return m_source->fd(); }

  Result<Hints> heard(const Clock& clock) override
  {
    Hints hints(m_locks.size());
    for (int messages = 0; messages < most_at_once; ++messages) {
      ASSIGN_OR_RETURN(const auto message, m_source->next({.deadline = clock.now(), .stop = StopToken::never()}));
      if (!message) {
        return hints;
      }
      const auto lock = std::find_if(m_locks.begin(), m_locks.end(),
                                     [&](const Channels& channels) { return channels.have(message->channel); });
      if (lock != m_locks.end()) {
        add_message(hints[static_cast<std::size_t>(lock - m_locks.begin())], message->text);
      }
    }
    return hints;
  }

  Result<Done> hear_releases(std::size_t which, const CallLimits& limit) override
  {
    const auto channels = release_channel(m_locks[which]);
    return channels.empty() ? Result(Done{}) : m_source->add(channels, limit);
  }

  // Holders that share hear no releases: they would hear each other, and would be counted as foreign waiters.
  Result<Done> hear_as_holder(std::span<const Owner> owners, const CallLimits& limit) override
  {
    std::vector<LockChannel> channels;
    for (std::size_t which = 0; which < m_locks.size(); ++which) {
      Channels& lock = m_locks[which];
      if (!std::exchange(lock.hears_takings, true)) {
        channels.push_back({lock.name, lock.taken});
      }
      if (std::string own = lock.owner_channel + owners[which].text(); own != lock.own) {
        lock.own = std::move(own);
        channels.push_back({lock.name, lock.own});
      }
      if (lock.is_exclusive) {
        std::ranges::move(release_channel(lock), std::back_inserter(channels));
      }
    }
    return channels.empty() ? Result(Done{}) : m_source->add(channels, limit);
  }

 private:
  // That it still has to subscribe to, or none. Counted even if that fails: one foreign client too few for a while does less harm.
  std::vector<LockChannel> release_channel(Channels& lock)
  {
    if (lock.releases.empty() || std::exchange(lock.hears_releases, true)) {
      return {};
    }
    m_release_subscriptions->add(lock.name, 1);
    return {{lock.name, lock.releases}};
  }

  std::unique_ptr<MessageSource> m_source;
  std::vector<Channels> m_locks;
  std::shared_ptr<ReleaseSubscriptions> m_release_subscriptions;
};

}  // namespace

Result<std::unique_ptr<Listener>> ScriptStore::listen(std::span<const LockSpec> specs, const Owner& owner,
                                                      const CallLimits& limit)
{
  std::vector<Channels> locks;
  for (const LockSpec& spec : specs) {
    const LockKeys keys(spec.name, spec.kind);
    locks.push_back({.name = spec.name.text(),
                     .own = keys.owner_channel + owner.text(),
                     .releases = keys.channel,
                     .done = spec.once ? keys.done : "",
                     .taken = keys.taken_channel,
                     .owner_channel = keys.owner_channel,
                     .is_exclusive = !kind_of(spec.kind).is_shared});
  }
  std::vector<LockChannel> heard;
  for (const Channels& lock : locks) {
    heard.push_back({lock.name, lock.own});
    if (!lock.done.empty()) {
      heard.push_back({lock.name, lock.done});
    }
  }
  ASSIGN_OR_RETURN(auto source, m_host->subscribe(heard, limit));
  return std::unique_ptr<Listener>(
      std::make_unique<ScriptListener>(std::move(source), std::move(locks), m_release_subscriptions));
}

}  // namespace rlock
