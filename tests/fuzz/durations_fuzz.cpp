// SPDX-License-Identifier: Apache-2.0
// Durations as people type them.
#include "base/duration.h"
#include "fuzz/fuzzer.h"
#include "fuzz/shown.h"

namespace rlock::test {

void fuzz_durations(std::string_view bytes)
{
  const auto parsed = parse_duration(bytes);
  if (!parsed) {
    return;
  }
  promise(*parsed >= Millis{0} && *parsed <= longest_duration, "a duration is within its limits");
  promise(parse_duration(show(*parsed)) == *parsed, "parse, print, parse is the same", show(*parsed));
  promise_one_line(show_roughly(*parsed));
}

}  // namespace rlock::test
