// SPDX-License-Identifier: Apache-2.0
#include "sim/interpose.h"

#include "sim/world.h"

#include <ctime>

#include <dlfcn.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>

namespace rlock::sim {
namespace {

template <typename Function>
Function* real(const char* name)
{
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

int wait_in_fiber(pollfd* waits, nfds_t count, Nanos timeout)
{
  const int ready = real_poll(waits, count, 0);
  if (ready != 0 || timeout == 0) {
    return ready;
  }
  const Host& host = Fiber::running()->process.host;
  const Nanos deadline = timeout < 0 ? never : host.true_time(host.now() + std::chrono::nanoseconds(timeout));
  return World::current().block(waits, count, deadline);
}

}  // namespace

int real_poll(pollfd* waits, nfds_t count, int timeout_ms)
{
  static auto* const poll = real<int(pollfd*, nfds_t, int)>("poll");
  return poll(waits, count, timeout_ms);
}

}  // namespace rlock::sim

using namespace rlock::sim;

extern "C" {

int poll(pollfd* waits, nfds_t count, int timeout_ms)
{
  if (Fiber::running() == nullptr) {
    return real_poll(waits, count, timeout_ms);
  }
  return wait_in_fiber(waits, count, timeout_ms < 0 ? -1 : Nanos{timeout_ms} * 1'000'000);
}

int ppoll(pollfd* waits, nfds_t count, const timespec* timeout, const sigset_t* mask)
{
  static auto* const real_ppoll = real<int(pollfd*, nfds_t, const timespec*, const sigset_t*)>("ppoll");
  if (Fiber::running() == nullptr) {
    return real_ppoll(waits, count, timeout, mask);
  }
  return wait_in_fiber(waits, count, timeout == nullptr ? -1 : timeout->tv_sec * 1'000'000'000 + timeout->tv_nsec);
}

// The thread of a watchdog is a fiber of its process; its number is the fiber's address.
int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*body)(void*), void* argument)
{
  static auto* const create = real<int(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*)>("pthread_create");
  if (Fiber::running() == nullptr) {
    return create(thread, attributes, body, argument);
  }
  Fiber& fiber = World::current().start_thread([=] { body(argument); });
  *thread = reinterpret_cast<pthread_t>(&fiber);
  return 0;
}

int pthread_join(pthread_t thread, void** result)
{
  static auto* const join = real<int(pthread_t, void**)>("pthread_join");
  if (Fiber::running() == nullptr) {
    return join(thread, result);
  }
  World::current().join(*reinterpret_cast<Fiber*>(thread));
  return 0;
}

// No simulated process gets a real signal.
int signalfd(int descriptor, const sigset_t* mask, int flags) noexcept
{
  static auto* const real_signalfd = real<int(int, const sigset_t*, int)>("signalfd");
  return Fiber::running() == nullptr ? real_signalfd(descriptor, mask, flags)
                                     : ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
}

}  // extern "C"
