// SPDX-License-Identifier: Apache-2.0
// Random numbers that a seed repeats. Source: splitmix64.
#pragma once

#include "base/clock.h"

namespace rlock::test {

class SeededRng final : public Rng {
 public:
  explicit SeededRng(std::uint64_t seed) : m_state(seed) {}
  std::uint64_t next() override
  {
    std::uint64_t mixed = m_state += 0x9e3779b97f4a7c15U;
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9U;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebU;
    return mixed ^ (mixed >> 31);
  }

 private:
  std::uint64_t m_state;
};

}  // namespace rlock::test
