// SPDX-License-Identifier: Apache-2.0
// How a keeper learns that its lock is let go of on purpose, and not lost.
//
// `rlock release` knocks before it tells the server, and stands there until it has. The keeper looks at its door before
// it calls a lock lost. Both are the kernel's own state, so nothing can be late or get lost between them, and no
// server is needed. The door is an abstract unix(7) socket named by the hold: where release is called in another
// network namespace or on another host, it finds none, and what it leaves on the server must tell.
#pragma once

#include "base/fd.h"
#include "base/result.h"
#include "lock/names.h"

#include <optional>

namespace rlock {

class ReleaseSocket {
 public:
  static Result<ReleaseSocket> open(const Hold& hold);  // ErrorCode::os

  [[nodiscard]] int fd() const { return m_socket.get(); }  // readable: somebody may have knocked

  // Who has knocked and is of our user, or root: readable (its end) when it has done what it came for.
  [[nodiscard]] std::optional<Fd> answer() const;

 private:
  explicit ReleaseSocket(Fd socket) : m_socket(std::move(socket)) {}
  Fd m_socket;
};

// To be held until the server has answered. Without a descriptor there is no such keeper here.
Fd announce_release(const Hold& hold);

}  // namespace rlock
