// SPDX-License-Identifier: Apache-2.0
// Loaded into rlock with LD_PRELOAD: a new process that asks for the memory of its parent gets a copy, and its parent goes on at
// once, as qemu-user and valgrind do it.

#include <dlfcn.h>
#include <sched.h>

extern "C" int clone(int (*function)(void*), void* stack, int flags, void* argument, ...) noexcept
{
  using Clone = int (*)(int (*)(void*), void*, int, void*, ...);
  return reinterpret_cast<Clone>(::dlsym(RTLD_NEXT, "clone"))(function, stack, flags & ~(CLONE_VM | CLONE_VFORK),
                                                              argument);
}
