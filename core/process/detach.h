// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace rlock {

// For a process that has just been forked and is to outlive its caller: a session of its own, so that neither the
// terminal's keys nor its hangup reach it; /dev/null for the standard streams and none of the descriptors that the
// caller passed in (those without FD_CLOEXEC), so that nobody waits for the end of a pipe because of it; and /
// for its directory, so that no file system is kept busy. What has FD_CLOEXEC is rlock's own and stays.
void detach();

// /dev/null for the standard streams, and nothing else of that.
void redirect_streams();

}  // namespace rlock
