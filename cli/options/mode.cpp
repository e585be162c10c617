// SPDX-License-Identifier: Apache-2.0
#include "cli/options/mode.h"

#include "cli/options/parse_words.h"

#include <array>

namespace rlock::cli {
namespace {

constexpr NumberRule permits_rule{"--permits", 1, 1'000'000, "5"};

enum class Format { redisson, string };
constexpr std::array formats{Choice<Format>{"redisson", Format::redisson}, Choice<Format>{"string", Format::string}};

void add_kind_options(Options options, RawMode& raw)
{
  options.flag("-s,--shared", raw.shared, "take a read-write lock as a reader, together with other readers");
  options.flag("-x,-e,--exclusive", raw.exclusive,
               "take a read-write lock as its only writer; without -s and -x: the plain lock");
  options.text("--permits", raw.permits, "N", "at most N holders at a time");
}

void add_format_option(Options& options, RawMode& raw)
{
  options.text("--format", raw.format, "redisson|string",
               "layout on the server; string: SET KEY NX PX, for clients that poll. A Java service that "
               "holds a lock of that name then cannot renew it (redisson)");
}

}  // namespace

void add_mode_options(Options& options, RawMode& raw)
{
  add_kind_options(options, raw);
  add_format_option(options, raw);
}

void add_hidden_mode_options(Options& options, RawMode& raw)
{
  add_kind_options(options.in(""), raw);
  add_format_option(options, raw);
}

Result<Mode> resolve_mode(const RawMode& raw)
{
  const auto format = resolve_choice(raw.format.value_or("redisson"), "--format", formats);
  if (!format) {
    return format.error();
  }
  const bool string = *format == Format::string;
  const int kinds = (raw.shared ? 1 : 0) + (raw.exclusive ? 1 : 0) + (raw.permits ? 1 : 0) + (string ? 1 : 0);
  if (kinds > 1) {
    return usage("--shared, --exclusive, --permits and --format string exclude each other (try one of them)");
  }
  if (raw.permits) {
    const Result<int> limit = resolve_number(*raw.permits, permits_rule);
    return limit ? Result<Mode>(Permits{static_cast<unsigned>(*limit)}) : Result<Mode>(limit.error());
  }
  if (raw.shared) {
    return Mode{Reader{}};
  }
  if (raw.exclusive) {
    return Mode{Writer{}};
  }
  return string ? Mode{StringLock{}} : Mode{Plain{}};
}

}  // namespace rlock::cli
