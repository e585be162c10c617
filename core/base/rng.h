// SPDX-License-Identifier: Apache-2.0
// Sources of random numbers. Constructors take one as an argument, so that tests can repeat the numbers. Not thread-safe.
#pragma once

#include <cstdint>
#include <string>

namespace rlock {

class Rng {
 public:
  virtual ~Rng() = default;
  virtual std::uint64_t next() = 0;  // 64 random bits
};

// Draws from getrandom(2), so that two processes that are forked at the same instant never draw the same numbers.
class SystemRng final : public Rng {
 public:
  std::uint64_t next() override;
};

// A number from 0 to limit - 1; the limit is not 0.
inline std::uint64_t below(Rng& rng, std::uint64_t limit) { return rng.next() % limit; }

// A random (version 4) UUID in lower case, RFC 9562.
std::string random_uuid(Rng& rng);

}  // namespace rlock
