// SPDX-License-Identifier: Apache-2.0
// One wait for one descriptor, within a Limit, and the words for what came of it. Private to wire.
#pragma once

#include "base/result.h"
#include "base/stop.h"

#include <string>

namespace rlock {

enum class Waited { ready, late, stopped };

// Ready goes before stopped: an answer that has come is worth more than the wish to wait no longer.
// A deadline that has passed still gets one look.
Waited wait_for(int fd, short events, const Clock& clock, const CallLimits& limit);

Error interrupted();
Error cut_off(const std::string& where);  // for Transport::follow_up

// The time since `start`, no longer than the limit gave, as people round it: "5s", "50ms".
std::string elapsed(const Clock& clock, Instant start, const CallLimits& limit);

// The system's text for an errno, in lower case as all of ours.
std::string os_text(int error);

}  // namespace rlock
