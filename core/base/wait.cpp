// SPDX-License-Identifier: Apache-2.0
#include "base/wait.h"

#include <poll.h>
#include <algorithm>
#include <cctype>
#include <system_error>
#include "base/duration.h"

namespace rlock {

Waited wait_for(int fd, short events, const Clock& clock, const CallLimits& limit)
{
  for (;;) {
    const Instant now = clock.now();
    pollfd wait[] = {{.fd = fd, .events = events, .revents = 0},
                     {.fd = limit.stop.fd(), .events = POLLIN, .revents = 0}};
    ::poll(wait, 2, poll_timeout(now, limit.deadline));  // after a failure nothing is ready, and the deadline counts
    if (wait[0].revents != 0) {
      return Waited::ready;
    }
    if (wait[1].revents != 0) {
      return Waited::stopped;
    }
    if (clock.now() >= limit.deadline) {
      return Waited::late;
    }
  }
}

Error interrupted() { return {ErrorCode::interrupted, "interrupted"}; }

Error no_answer_in_time(std::string text)
{
  Error late = unreachable(std::move(text), raise_timeout);
  late.late = true;
  return late;
}

std::string elapsed(const Clock& clock, Instant start, const CallLimits& limit)
{
  using Tenths = std::chrono::duration<std::int64_t, std::deci>;
  const Millis time = std::chrono::ceil<Millis>(std::min(clock.now(), limit.deadline) - limit.since.value_or(start));
  return show(time < std::chrono::seconds{1} ? time : std::chrono::round<Tenths>(time));
}

std::string os_text(int error)
{
  std::string text = std::generic_category().message(error);
  text[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(text[0])));
  return text;
}

}  // namespace rlock
