// SPDX-License-Identifier: Apache-2.0
#include "base/rng.h"

#include <array>
#include <cerrno>
#include <cstdio>
#include <system_error>

#include <sys/random.h>

namespace rlock {

std::uint64_t SystemRng::next()
{
  std::uint64_t bits = 0;
  while (::getrandom(&bits, sizeof bits, 0) != static_cast<ssize_t>(sizeof bits)) {
    if (errno != EINTR) {
      throw std::system_error(errno, std::generic_category(), "getrandom");
    }
  }
  return bits;
}

std::string random_uuid(Rng& rng)
{
  const std::uint64_t high = (rng.next() & ~0xf000ULL) | 0x4000ULL;
  const std::uint64_t low = (rng.next() & ~(3ULL << 62)) | (2ULL << 62);
  std::array<char, 37> text{};
  std::snprintf(text.data(), text.size(), "%08x-%04x-%04x-%04x-%012llx", static_cast<unsigned>(high >> 32),
                static_cast<unsigned>(high >> 16 & 0xffff), static_cast<unsigned>(high & 0xffff),
                static_cast<unsigned>(low >> 48), static_cast<unsigned long long>(low & 0xffffffffffffULL));
  return text.data();
}

}  // namespace rlock
