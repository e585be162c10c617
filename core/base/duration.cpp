// SPDX-License-Identifier: Apache-2.0
#include "base/duration.h"

#include <array>
#include <cstdint>

namespace rlock {
namespace {

struct Unit {
  std::string_view name;
  std::int64_t ms;
};
// "ms" stands before "m" because the first match is taken.
constexpr std::array units{Unit{"ms", 1}, Unit{"s", 1000}, Unit{"m", 60'000}, Unit{"h", 3'600'000},
                           Unit{"d", 86'400'000}};
constexpr std::array biggest_first{Unit{"d", 86'400'000}, Unit{"h", 3'600'000}, Unit{"m", 60'000},
                                   Unit{"s", 1000}, Unit{"ms", 1}};
constexpr std::int64_t ten_years_ms = 10LL * 366 * 86'400'000;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// A number of thousandths, so that 1.5s and 0.2 are exact. nullopt when there are no digits.
std::optional<std::int64_t> take_thousandths(std::string_view& text)
{
  std::int64_t value = 0;
  std::size_t used = 0;
  std::size_t digits = 0;
  for (; used < text.size() && is_digit(text[used]); ++used, ++digits) {
    value = value * 10 + (text[used] - '0');
    if (value > ten_years_ms) {
      return std::nullopt;
    }
  }
  value *= 1000;
  if (used < text.size() && text[used] == '.') {
    std::int64_t weight = 100;
    for (++used; used < text.size() && is_digit(text[used]); ++used, ++digits) {
      value += weight * (text[used] - '0');
      weight /= 10;
    }
  }
  if (digits == 0) {
    return std::nullopt;
  }
  text.remove_prefix(used);
  return value;
}

std::optional<Unit> take_unit(std::string_view& text)
{
  for (const Unit& unit : units) {
    if (text.starts_with(unit.name)) {
      text.remove_prefix(unit.name.size());
      return unit;
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<Millis> parse_duration(std::string_view text)
{
  std::int64_t total = 0;
  std::int64_t last_unit = INT64_MAX;
  if (text.empty()) {
    return std::nullopt;
  }
  const bool bare = text.find_first_not_of("0123456789.") == std::string_view::npos;
  while (!text.empty()) {
    const auto thousandths = take_thousandths(text);
    const auto unit = bare ? std::optional<Unit>{Unit{"s", 1000}} : take_unit(text);
    if (!thousandths || !unit || unit->ms >= last_unit || (bare && !text.empty())) {
      return std::nullopt;  // "1s1m" and "1s1s" are slips of the hand
    }
    last_unit = unit->ms;
    std::int64_t scaled = 0;
    if (__builtin_mul_overflow(*thousandths, unit->ms, &scaled)) {
      return std::nullopt;
    }
    total += scaled / 1000;
    if (scaled > 0 && scaled < 1000) {
      total += 1;  // 0.1ms is short, not zero: zero often means something else
    }
    if (total > ten_years_ms) {
      return std::nullopt;
    }
  }
  return Millis{total};
}

std::string show(Millis duration)
{
  std::string text;
  std::int64_t rest = duration.count();
  for (const Unit& unit : biggest_first) {
    if (rest >= unit.ms) {
      text += std::to_string(rest / unit.ms) + std::string(unit.name);
      rest %= unit.ms;
    }
  }
  return text.empty() ? "0s" : text;
}

std::string show_roughly(Millis duration)
{
  std::string text;
  std::int64_t rest = duration.count();
  int shown = 0;
  for (const Unit& unit : biggest_first) {
    const bool fine = unit.ms == 1 && shown > 0;  // nobody reads "3s 17ms"
    if (shown < 2 && !fine && rest >= unit.ms) {
      text += (shown > 0 ? " " : "") + std::to_string(rest / unit.ms) + std::string(unit.name);
      rest %= unit.ms;
      ++shown;
    }
  }
  return text.empty() ? "0s" : text;
}

}  // namespace rlock
