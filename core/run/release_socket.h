// SPDX-License-Identifier: Apache-2.0
// Tells a keeper that its lock is being released on purpose, so that the keeper does not report a loss.
//
// `rlock release` connects to the keeper's socket before it sends the release to the server, and keeps the connection open until
// the server has answered. The keeper looks for a connection before it reports a loss. The kernel knows the socket and the
// connection, so no message can be late or lost. The socket is an abstract unix(7) socket whose name contains the hold. A release
// from another network namespace or host finds no socket; then the event log on the server tells the keeper.
#pragma once

#include <optional>
#include <utility>
#include "base/fd.h"
#include "base/result.h"
#include "lock/names.h"

namespace rlock {

// The keeper's end. Owns the descriptor.
class ReleaseSocket {
 public:
  static Result<ReleaseSocket> open(const Hold& hold);  // ErrorCode::os

  [[nodiscard]] int fd() const { return m_socket.get(); }  // readable: accept() may have a connection

  // The connection of a process of the same user or of root; nullopt: there is none. The connection becomes readable
  // when that process has released the lock or has ended.
  [[nodiscard]] std::optional<Fd> accept() const;

 private:
  explicit ReleaseSocket(Fd socket) : m_socket(std::move(socket)) {}
  Fd m_socket;
};

// Connects to the keeper of this hold. The caller keeps the connection open until the server has answered the release. No
// descriptor: this host has no such keeper.
Fd announce_release(const Hold& hold);

// Tells the keeper the exit code of the run, 0 to 255. Call this when the server has answered the release. `announced`: of
// announce_release.
void announce_exit_code(const Fd& announced, int code);

}  // namespace rlock
