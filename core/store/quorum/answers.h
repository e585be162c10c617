// SPDX-License-Identifier: Apache-2.0
// The answers of several servers to one question, and how they are counted.
#pragma once

#include "base/parallel_query.h"
#include "base/result.h"
#include "store/quorum/quorum.h"

#include <cstddef>
#include <string>
#include <utility>

namespace rlock {

// The answers in the order of the servers; nullopt: no answer yet.
template <typename T>
using Answers = Replies<Result<T>>;

// Counts the answers: each is an Error, a yes or a no. `means_yes` tells a yes from a no.
template <typename T, typename MeansYes>
Tally tally(const Answers<T>& answers, MeansYes means_yes)
{
  Tally all;
  for (const auto& answer : answers) {
    if (!answer) {
      ++all.silent;
    } else if (!*answer) {
      ++all.failed;
    } else if (means_yes(**answer)) {
      ++all.yes;
    } else {
      ++all.no;
    }
  }
  return all;
}

// The tally at the end: a server that is still silent has failed.
inline Tally final_tally(Tally all)
{
  all.failed += std::exchange(all.silent, 0);
  return all;
}

// Why there is no quorum: the first reason, and the number of servers that failed. The code is that of an error that may pass,
// unless the errors that do not pass already prevent a quorum. Silent servers count only if the other failures do not prevent a
// quorum.
template <typename T>
Error no_quorum(const Answers<T>& answers, std::size_t quorum)
{
  const std::size_t spare = answers.size() - quorum;
  const Tally all = tally(answers, [](const T&) { return true; });
  const Error* first = nullptr;
  const Error* first_lasting = nullptr;
  std::size_t lasting = 0;
  for (const auto& answer : answers) {
    if (!answer || *answer) {
      continue;
    }
    const Error& error = answer->error();
    first = first != nullptr ? first : &error;
    if (!is_passing(error.code) && error.code != ErrorCode::interrupted) {
      ++lasting;
      first_lasting = first_lasting != nullptr ? first_lasting : &error;
    }
  }
  const Error silence{ErrorCode::unreachable, "no answer in time (raise --server-timeout)"};
  const std::size_t failed = all.failed > spare ? all.failed : all.failed + all.silent;
  const Error& why = lasting > spare ? *first_lasting : first != nullptr ? *first : silence;
  return {lasting > spare ? why.code : ErrorCode::unreachable,
          std::to_string(failed) + " of " + std::to_string(answers.size()) + " servers failed, and it takes " +
              std::to_string(quorum) + ": " + why.text +
              (failed > 1 ? ", and " + std::to_string(failed - 1) + " more" : "")};
}

}  // namespace rlock
