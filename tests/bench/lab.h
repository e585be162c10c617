// SPDX-License-Identifier: Apache-2.0
// Shared by the measuring programs. Each prints one JSON object for run.py; the figures of a row are those of the rounds.
#pragma once

#define DOCTEST_CONFIG_IMPLEMENT
#include "support/fixture_failures.h"

#include <nlohmann/json.hpp>

#include <cstdio>
#include <string>
#include <vector>

namespace rlock::bench {

using Words = std::vector<std::string>;

inline Words operator+(Words left, const Words& right)
{
  left.insert(left.end(), right.begin(), right.end());
  return left;
}

using Figures = nlohmann::ordered_json;

inline void print(const Figures& figures) { std::puts(figures.dump().c_str()); }

using test::FixtureFailures;

}  // namespace rlock::bench
