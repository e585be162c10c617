// SPDX-License-Identifier: Apache-2.0
// How the adapters for databases of SQL make their tables: where a statement finds none.
#pragma once

#include <optional>
#include <utility>
#include "base/result.h"
#include "engine/shared_table.h"

namespace rlock::record {

// Asks, and makes the tables and asks again while they are missing, if the URL permits that. Two clients may make them at once; the one
// that fails asks again. If they stay missing, the Error is the reason why they could not be made. A column of rlock may be missing in
// the table of another program (`are_shared`); in rlock's own table it means that the table is another.
template <typename Connection, typename Spec, typename Ask, typename Make>
auto ask_with_tables(const Connection& connection, const Spec& spec, bool are_shared, const Ask& ask, const Make& make)
{
  const auto is_missing = [&] {
    using Refusal = decltype(connection.refusal());
    return connection.refusal() == Refusal::no_such_table ||
           (are_shared && connection.refusal() == Refusal::no_such_column);
  };
  constexpr int most_tries = 3;
  std::optional<Error> not_made;
  auto answer = ask();
  if (!answer && !spec.creates_tables && is_missing()) {
    return decltype(answer)(not_prepared(connection.where(), spec.table));
  }
  for (int tries = 0; !answer && spec.creates_tables && is_missing() && tries < most_tries; ++tries) {
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
