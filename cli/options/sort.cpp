// SPDX-License-Identifier: Apache-2.0
#include "cli/options/sort.h"

#include <array>

namespace rlock::cli {
namespace {

constexpr std::array orders{Choice<SortBy>{"age", SortBy::age}, Choice<SortBy>{"ttl", SortBy::ttl},
                            Choice<SortBy>{"key", SortBy::key}, Choice<SortBy>{"waiting", SortBy::waiting}};

}  // namespace

void add_sort_option(Options& options, Text& raw)
{
  options.text("--sort", raw, "age|ttl|key|waiting",
               "first the oldest, the next to expire, by name, or the longest queue (key)");
}

Result<SortBy> resolve_sort(const Text& raw)
{
  return raw ? resolve_choice(*raw, "--sort", orders) : Result(SortBy::key);
}

}  // namespace rlock::cli
