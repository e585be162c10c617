// SPDX-License-Identifier: Apache-2.0
#include "lock/redis_store.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace rlock {
namespace {

// "look MS" means: not before that. Everything else but "next" is worth asking at once.
Millis delay_of(std::string_view text)
{
  constexpr std::string_view look = "look ";
  std::int64_t ms = 0;
  if (text.starts_with(look)) {
    text.remove_prefix(look.size());
    std::from_chars(text.data(), text.data() + text.size(), ms);
  }
  return Millis{std::clamp<std::int64_t>(ms, 0, 10'000)};
}

void take_in(Hint& hint, std::string_view text)
{
  if (text == "next") {
    hint.next = true;
  } else {
    const Millis in = delay_of(text);
    hint.look_in = hint.look_in ? std::min(*hint.look_in, in) : in;
  }
}

class SubscribedListener final : public Listener {
 public:
  SubscribedListener(Subscription subscription, std::string release_channel, std::shared_ptr<std::atomic<int>> ears)
      : m_subscription(std::move(subscription)),
        m_release_channel(std::move(release_channel)),
        m_ears(std::move(ears))
  {
  }
  ~SubscribedListener() override { *m_ears -= m_hears_releases ? 1 : 0; }
  SubscribedListener(const SubscribedListener&) = delete;
  SubscribedListener& operator=(const SubscribedListener&) = delete;

  [[nodiscard]] int fd() const override { return m_subscription.fd(); }

  Result<Hint> heard(const Clock& clock) override
  {
    Hint hint;
    for (;;) {
      const auto message = m_subscription.next({.deadline = clock.now(), .stop = Stop::never()});
      if (!message) {
        return message.error();
      }
      if (!*message) {
        return hint;
      }
      take_in(hint, (*message)->text);
    }
  }

  Result<Done> hear_releases(const Limit& limit) override
  {
    if (m_hears_releases || m_release_channel.empty()) {
      return Done{};
    }
    m_hears_releases = true;  // counted even if it fails: better one foreign client too few for a while
    *m_ears += 1;
    return m_subscription.add(m_release_channel, limit);
  }

 private:
  Subscription m_subscription;
  std::string m_release_channel;
  std::shared_ptr<std::atomic<int>> m_ears;
  bool m_hears_releases = false;
};

}  // namespace

Result<std::unique_ptr<Listener>> RedisStore::listen(const LockSpec& spec, const Owner& owner,
                                                     const Limit& limit)
{
  const LockKeys keys(spec.name, spec.mode);
  const std::string own = keys.owner_channel + owner.text();
  const std::array<std::string_view, 2> channels{own, keys.done};
  const std::span heard(channels.data(), spec.once ? 2 : 1);
  auto subscription = m_transport->subscribe(spec.name.text(), heard, limit);
  if (!subscription) {
    return subscription.error();
  }
  return std::unique_ptr<Listener>(
      std::make_unique<SubscribedListener>(*std::move(subscription), keys.channel, m_ears));
}

}  // namespace rlock
