// SPDX-License-Identifier: Apache-2.0
#include "cli/help/suggest.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>
#include <vector>

namespace rlock::cli {
namespace {

// The Levenshtein distance, one row at a time; two neighbours that are swapped count as one error.
std::size_t distance(std::string_view from, std::string_view to)
{
  std::vector<std::size_t> before(to.size() + 1);
  std::vector<std::size_t> last(to.size() + 1);
  std::iota(last.begin(), last.end(), std::size_t{0});
  for (std::size_t i = 0; i < from.size(); ++i) {
    std::vector<std::size_t> row{i + 1};
    for (std::size_t j = 0; j < to.size(); ++j) {
      row.push_back(std::min({last[j] + (from[i] == to[j] ? 0 : 1), row[j] + 1, last[j + 1] + 1}));
      if (i > 0 && j > 0 && from[i] == to[j - 1] && from[i - 1] == to[j]) {
        row[j + 1] = std::min(row[j + 1], before[j - 1] + 1);
      }
    }
    before = std::exchange(last, std::move(row));
  }
  return last.back();
}

std::string_view letters(std::string_view word)
{
  return word.substr(std::min(word.find_first_not_of('-'), word.size()));
}

// The most similar word: up to a third of the letters may be wrong, but not the first letter of a short word.
std::string_view nearest(std::string_view typed, std::span<const std::string> known)
{
  constexpr std::size_t longest = 40;  // a longer word is no typing error, and the distance takes quadratic time
  const std::string_view slip = letters(typed);
  const std::size_t allowed = slip.size() > longest ? 0 : std::min<std::size_t>(slip.size() / 3, 3);
  std::string_view best;
  std::size_t least = allowed + 1;
  for (const std::string& word : known) {
    const bool is_likely = allowed > 1 || (allowed == 1 && letters(word).starts_with(slip.front()));
    const std::size_t far = is_likely ? distance(slip, letters(word)) : least;
    if (far < least) {
      least = far;
      best = word;
    }
  }
  return best;
}

// The only word that begins with `typed`.
std::string_view completed(std::string_view typed, std::span<const std::string> known)
{
  std::string_view found;
  for (const std::string& word : known) {
    if (letters(typed).size() >= 2 && word.starts_with(typed)) {
      if (!found.empty()) {
        return {};
      }
      found = word;
    }
  }
  return found;
}

}  // namespace

std::string did_you_mean(std::string_view typed, std::span<const std::string> known, std::string_view otherwise)
{
  const std::string_view near = nearest(typed, known);
  const std::string_view best = near.empty() ? completed(typed, known) : near;
  return best.empty() ? std::string(otherwise) : " (did you mean '" + std::string(best) + "'?)";
}

}  // namespace rlock::cli
