// SPDX-License-Identifier: Apache-2.0
#include "lock/redis_store.h"

#include <array>

namespace rlock {
namespace {

class SubscribedListener final : public Listener {
 public:
  explicit SubscribedListener(Subscription subscription) : m_subscription(std::move(subscription)) {}

  [[nodiscard]] int fd() const override { return m_subscription.fd(); }

  Result<bool> heard(const Clock& clock) override
  {
    bool any = false;
    for (;;) {
      const auto message = m_subscription.next({.deadline = clock.now(), .stop = Stop::never()});
      if (!message) {
        return message.error();
      }
      if (!*message) {
        return any;
      }
      any = true;
    }
  }

 private:
  Subscription m_subscription;
};

}  // namespace

Result<std::unique_ptr<Listener>> RedisStore::listen(const LockName& name, const Owner& owner,
                                                     const Limit& limit)
{
  const std::string channel = LockKeys(name).owner_channel + owner.text();
  const std::array<std::string_view, 1> channels{channel};
  auto subscription = m_transport->subscribe(name.text(), channels, limit);
  if (!subscription) {
    return subscription.error();
  }
  return std::unique_ptr<Listener>(std::make_unique<SubscribedListener>(*std::move(subscription)));
}

}  // namespace rlock
