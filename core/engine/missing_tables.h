// SPDX-License-Identifier: Apache-2.0
// How the adapters for databases of SQL make their tables: where a statement finds none.
#pragma once

#include <optional>
#include <utility>
#include "base/result.h"

namespace rlock::record {

// Whether a statement was refused because tables are missing. A column of rlock may be missing in the table of another program; in
// rlock's own table it means that the table is another.
template <typename Refusal>
bool is_table_missing(Refusal refusal, bool are_shared)
{
  return refusal == Refusal::no_such_table || (are_shared && refusal == Refusal::no_such_column);
}

// Asks, and makes the tables and asks again while they are missing. Two clients may make them at once; the one that fails asks again.
// If they stay missing, the Error is the reason why they could not be made.
template <typename Ask, typename IsMissing, typename Make>
auto ask_with_tables(const Ask& ask, const IsMissing& is_missing, const Make& make)
{
  constexpr int most_tries = 3;
  std::optional<Error> not_made;
  auto answer = ask();
  for (int tries = 0; !answer && is_missing() && tries < most_tries; ++tries) {
    const auto made = make();
    not_made = made ? std::nullopt : std::optional(made.error());
    if (not_made && not_made->code == ErrorCode::refused) {
      return decltype(answer)(*not_made);
    }
    answer = ask();
  }
  return !answer && not_made && is_missing() ? decltype(answer)(*not_made) : std::move(answer);
}

}  // namespace rlock::record
