// SPDX-License-Identifier: Apache-2.0
#include "cli/options/color.h"

#include <array>

#include <unistd.h>

namespace rlock::cli {
namespace {

enum class When { automatic, always, never };
constexpr std::array times{Choice<When>{"auto", When::automatic}, Choice<When>{"always", When::always},
                           Choice<When>{"never", When::never}};

}  // namespace

void add_color_option(Options& options, Text& raw)
{
  options.text("--color", raw, "auto|always|never",
               "colours in text; auto: on a terminal, unless the variable NO_COLOR is not empty (auto)");
}

Result<Colours> resolve_colours(const Text& raw, const Environment& environment)
{
  const Result<When> when = raw ? resolve_choice(*raw, "--color", times) : Result(When::automatic);
  if (!when) {
    return when.error();
  }
  const bool suits =
      ::isatty(STDOUT_FILENO) == 1 && environment.value("NO_COLOR").empty() && environment.value("TERM") != "dumb";
  return Colours(*when == When::always || (*when == When::automatic && suits));
}

}  // namespace rlock::cli
