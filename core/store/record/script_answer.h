// SPDX-License-Identifier: Apache-2.0
// What the engine reads in the answer of a script.
#pragma once

#include <string_view>
#include "store/record/key_space.h"

namespace rlock::record {

// Whether the first word of the answer is this one.
inline bool is_answer(const Value& answer, std::string_view word)
{
  return !answer.elements.empty() && answer.elements.front().text == word;
}

}  // namespace rlock::record
