// SPDX-License-Identifier: Apache-2.0
#include "cli/options/mode.h"

#include "cli/options/split_argv.h"

#include <array>

namespace rlock::cli {
namespace {

constexpr NumberRule permits_rule{"--permits", 1, 1'000'000, "5"};

enum class Format { redisson, string };
constexpr std::array formats{Choice<Format>{"redisson", Format::redisson}, Choice<Format>{"string", Format::string}};

void describe_kinds(Options options, RawMode& typed)
{
  options.flag("-s,--shared", typed.shared, "with other readers of a read-write lock");
  options.flag("-x,-e,--exclusive", typed.exclusive,
               "alone, as the writer of a read-write lock; neither -s nor -x: the plain lock");
  options.text("--permits", typed.permits, "N", "at most N holders at a time");
}

void describe_format(Options& options, RawMode& typed)
{
  options.text("--format", typed.format, "redisson|string",
               "the layout on the server; string: SET KEY NX PX, for clients that poll. A Java "
               "service that locks the "
               "same name then fails to renew (redisson)");
}

}  // namespace

void describe_mode(Options& options, RawMode& typed)
{
  describe_kinds(options, typed);
  describe_format(options, typed);
}

void describe_mode_of_one(Options& options, RawMode& typed)
{
  describe_kinds(options.in(""), typed);
  describe_format(options, typed);
}

Result<Mode> resolve_mode(const RawMode& typed)
{
  const auto format = resolve_choice(typed.format.value_or("redisson"), "--format", formats);
  if (!format) {
    return format.error();
  }
  const bool string = *format == Format::string;
  const int kinds = (typed.shared ? 1 : 0) + (typed.exclusive ? 1 : 0) + (typed.permits ? 1 : 0) + (string ? 1 : 0);
  if (kinds > 1) {
    return usage("--shared, --exclusive, --permits and --format string exclude each other (try one of them)");
  }
  if (typed.permits) {
    const Result<int> limit = resolve_number(*typed.permits, permits_rule);
    return limit ? Result<Mode>(Permits{static_cast<unsigned>(*limit)}) : Result<Mode>(limit.error());
  }
  if (typed.shared) {
    return Mode{Reader{}};
  }
  if (typed.exclusive) {
    return Mode{Writer{}};
  }
  return string ? Mode{StringLock{}} : Mode{Plain{}};
}

}  // namespace rlock::cli
