// SPDX-License-Identifier: Apache-2.0
#include "cli/suggest.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>
#include <vector>

namespace rlock::cli {
namespace {

// Levenshtein's distance, one row at a time.
std::size_t distance(std::string_view from, std::string_view to)
{
  std::vector<std::size_t> row(to.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < from.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < to.size(); ++j) {
      const std::size_t replaced = diagonal + (from[i] == to[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

}  // namespace

std::string did_you_mean(std::string_view typed, std::span<const std::string> known,
                         std::string_view otherwise)
{
  constexpr std::size_t longest = 40;  // a longer word is no slip, and the distance is quadratic
  const std::size_t allowed =
      typed.size() > longest ? 0 : std::min<std::size_t>(typed.size() / 3, 3);
  std::string_view best;
  std::size_t least = allowed + 1;
  for (const std::string& word : known) {
    const std::size_t far = allowed == 0 ? least : distance(typed, word);
    if (far < least) {
      least = far;
      best = word;
    }
  }
  return best.empty() ? std::string(otherwise) : " (did you mean '" + std::string(best) + "'?)";
}

}  // namespace rlock::cli
