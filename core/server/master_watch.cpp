// SPDX-License-Identifier: Apache-2.0
#include "server/master_watch.h"

#include "net/errors.h"

#include <array>
#include <utility>

namespace rlock {
namespace {

constexpr std::string_view channel = "+switch-master";

}  // namespace

MasterWatch::MasterWatch(Connection sentinel, std::string prefix, std::string now,
                         std::shared_ptr<std::atomic<bool>> moved)
    : m_sentinel(std::move(sentinel)), m_prefix(std::move(prefix)), m_now(std::move(now)), m_moved(std::move(moved))
{
}

Result<MasterWatch> MasterWatch::open(Connection sentinel, const std::string& name, const HostPort& now,
                                      std::shared_ptr<std::atomic<bool>> moved, const CallLimits& limit)
{
  const std::array<std::string_view, 2> argv{"SUBSCRIBE", channel};
  const auto confirmed = sentinel.call(argv, limit);
  if (!confirmed) {
    return confirmed.error();
  }
  if (confirmed->is_error()) {
    return error_from_reply(confirmed->text, sentinel.where());
  }
  return MasterWatch(std::move(sentinel), name + " ", " " + now.host + " " + std::to_string(now.port),
                     std::move(moved));
}

Result<bool> MasterWatch::has_moved()
{
  for (;;) {
    const auto message = m_sentinel.receive({.deadline = Instant{}, .stop = StopToken::never()});
    if (!message) {
      return message.error();
    }
    if (!*message) {
      return m_moved->load();
    }
    if (announces_other_master(**message)) {
      m_moved->store(true);
    }
  }
}

// "NAME OLD-HOST OLD-PORT NEW-HOST NEW-PORT"
bool MasterWatch::announces_other_master(const Reply& message) const
{
  if (message.elements.size() != 3 || message.elements[1].text != channel) {
    return false;
  }
  const std::string& text = message.elements[2].text;
  return text.starts_with(m_prefix) && !text.ends_with(m_now);
}

}  // namespace rlock
