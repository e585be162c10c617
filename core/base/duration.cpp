// SPDX-License-Identifier: Apache-2.0
#include "base/duration.h"

#include "base/text.h"

#include <algorithm>
#include <array>
#include <cstdint>

namespace rlock {
namespace {

struct Unit {
  std::string_view name;
  std::int64_t ms;
};
// The units. If two units begin alike, the longer one comes first, because the first match counts.
constexpr std::array units{Unit{"ms", 1},
                           Unit{"seconds", 1000},
                           Unit{"second", 1000},
                           Unit{"sec", 1000},
                           Unit{"s", 1000},
                           Unit{"minutes", 60'000},
                           Unit{"minute", 60'000},
                           Unit{"min", 60'000},
                           Unit{"m", 60'000},
                           Unit{"hours", 3'600'000},
                           Unit{"hour", 3'600'000},
                           Unit{"h", 3'600'000},
                           Unit{"days", 86'400'000},
                           Unit{"day", 86'400'000},
                           Unit{"d", 86'400'000},
                           Unit{"weeks", 604'800'000},
                           Unit{"week", 604'800'000},
                           Unit{"w", 604'800'000}};
constexpr std::array biggest_first{Unit{"d", 86'400'000}, Unit{"h", 3'600'000}, Unit{"m", 60'000}, Unit{"s", 1000},
                                   Unit{"ms", 1}};
constexpr std::int64_t longest_ms = longest_duration.count();

// A number of thousandths, so that 1.5s and 0.2 are exact; at most longest_ms of them. nullopt: there are no digits.
std::optional<std::int64_t> take_thousandths(std::string_view& text)
{
  std::int64_t value = 0;
  std::size_t used = 0;
  std::size_t digits = 0;
  for (; used < text.size() && is_digit(text[used]); ++used, ++digits) {
    value = std::min(value * 10 + (text[used] - '0'), longest_ms);
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

std::variant<Millis, DurationFlaw> read_duration(std::string_view text)
{
  std::int64_t total = 0;
  std::int64_t last_unit = INT64_MAX;
  if (text.empty()) {
    return DurationFlaw::malformed;
  }
  const bool bare = text.find_first_not_of("0123456789.") == std::string_view::npos;
  while (!text.empty()) {
    const auto thousandths = take_thousandths(text);
    const auto unit = bare ? std::optional<Unit>{Unit{"s", 1000}} : take_unit(text);
    if (!thousandths || !unit || unit->ms >= last_unit || (bare && !text.empty())) {
      return DurationFlaw::malformed;  // "1s1m" and "1s1s" are typing errors
    }
    last_unit = unit->ms;
    std::int64_t scaled = 0;
    if (__builtin_mul_overflow(*thousandths, unit->ms, &scaled)) {
      scaled = INT64_MAX;
    }
    total = std::min(total + scaled / 1000, longest_ms + 1);
    if (scaled > 0 && scaled < 1000) {
      total += 1;  // 0.1ms is short, not zero: zero often means something else
    }
  }
  return total > longest_ms ? std::variant<Millis, DurationFlaw>(DurationFlaw::too_long) : Millis{total};
}

std::optional<Millis> parse_duration(std::string_view text)
{
  const auto read = read_duration(text);
  const auto* duration = std::get_if<Millis>(&read);
  return duration != nullptr ? std::optional(*duration) : std::nullopt;
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
    const bool fine = unit.ms == 1 && shown > 0;  // not "3s 17ms"
    if (shown < 2 && !fine && rest >= unit.ms) {
      text += (shown > 0 ? " " : "") + std::to_string(rest / unit.ms) + std::string(unit.name);
      rest %= unit.ms;
      ++shown;
    }
  }
  return text.empty() ? "0s" : text;
}

}  // namespace rlock
