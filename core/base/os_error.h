// SPDX-License-Identifier: Apache-2.0
// What the errno of a failed system call means.
#pragma once

#include <cerrno>

namespace rlock {

// The system has no more memory or descriptors; nothing is wrong with what was asked for.
constexpr bool is_shortage(int error)
{
  return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

}  // namespace rlock
