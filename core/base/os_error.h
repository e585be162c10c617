// SPDX-License-Identifier: Apache-2.0
// What the errno of a failed system call means.
#pragma once

#include <cerrno>

namespace rlock {

// Whether the system has run out of memory or descriptors, so that the same call may succeed later.
constexpr bool is_shortage(int error)
{
  return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

}  // namespace rlock
