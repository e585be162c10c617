// SPDX-License-Identifier: Apache-2.0
// Loaded into a server with LD_PRELOAD: a clock that is SKEW_MS ahead and runs SKEW_PERCENT faster than this machine's.
#include <cstdlib>

#include <dlfcn.h>
#include <sys/time.h>

namespace {

using RealClock = int (*)(timeval*, void*);

long long from_environment(const char* name)
{
  const char* text = std::getenv(name);
  return text != nullptr ? std::atoll(text) : 0;
}

long long micros(const timeval& time) { return time.tv_sec * 1'000'000LL + time.tv_usec; }

}  // namespace

extern "C" int gettimeofday(timeval* now, void* zone) noexcept
{
  static const auto real = reinterpret_cast<RealClock>(::dlsym(RTLD_NEXT, "gettimeofday"));
  static const long long ahead = from_environment("SKEW_MS") * 1000;
  static const long long percent = from_environment("SKEW_PERCENT");
  const int result = real(now, zone);
  static const long long start = micros(*now);
  const long long shown = micros(*now) + ahead + (micros(*now) - start) * percent / 100;
  now->tv_sec = shown / 1'000'000;
  now->tv_usec = shown % 1'000'000;
  return result;
}
