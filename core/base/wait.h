// SPDX-License-Identifier: Apache-2.0
// Waits for a descriptor of a connection, and the errors and texts that follow from such a wait.
#pragma once

#include <string>
#include "base/clock.h"
#include "base/defaults.h"
#include "base/result.h"

namespace rlock {

enum class Waited { ready, late, stopped };

// Waits for `events`. If the descriptor is ready, returns `ready` also when the stop was requested or the deadline has passed, so
// that an answer that has arrived is not lost.
Waited wait_for(int fd, short events, const Clock& clock, const CallLimits& limit);

Error interrupted();

// The time since `start`, or since CallLimits::since, at most until the deadline, rounded for people: "5s", "50ms".
std::string elapsed(const Clock& clock, Instant start, const CallLimits& limit);

// The advice in the error of a server that answers too late.
inline constexpr const char* raise_timeout = " (raise --server-timeout)";

// Of a server that answered too late, or not at all. Adds the advice to the text.
Error no_answer_in_time(std::string text);

// The system's text for an errno, in lower case like all messages of rlock.
std::string os_text(int error);

}  // namespace rlock
