// SPDX-License-Identifier: Apache-2.0
// The system calls by which code of rlock waits: this program defines them itself. In a fiber they wait in virtual time;
// elsewhere they are those of libc.
#pragma once

#include <poll.h>

namespace rlock::sim {

int real_poll(pollfd* waits, nfds_t count, int timeout_ms);

}  // namespace rlock::sim
