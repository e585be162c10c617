// SPDX-License-Identifier: Apache-2.0
// Standard output, for the verbs that print.
// Colors of text for people: SGR sequences of ECMA-48, which every terminal that has colors understands.
// Text in columns, as a terminal shows it: East Asian characters and emoji take two columns, combining marks none.
#pragma once

#include "base/result.h"

#include <cstddef>
#include <string>
#include <string_view>

namespace rlock::cli {

void print(std::string_view text);  // unchanged; finish_output reports a failure

// ErrorCode::os: not all of the output could be written. A caller must not take half an answer for a whole one.
Result<Done> finish_output();

// Whether the reader of standard output has ended, as with `rlock watch | head`. If so, drops the output that is left, so that
// finish_output succeeds.
bool drop_unread_output();

enum class Style { bold, red, green, yellow, inverse };

class Colors {
 public:
  explicit Colors(bool on = false) : m_on(on) {}

  // `text` in that style, and the terminal's own style after it. Without colors: the text.
  [[nodiscard]] std::string paint(Style style, std::string_view text) const;

 private:
  bool m_on;
};

// The number of columns, by wcwidth(3) of the C library, character by character as most terminals count. Where the system has no
// locale C.UTF-8, each character counts as one column.
std::size_t width(std::string_view text);

// Exactly `columns` wide: filled with blanks, or cut, with … as the last character.
std::string fitted(std::string_view text, std::size_t columns);

// At most `columns` wide.
std::string clipped(std::string_view text, std::size_t columns);

}  // namespace rlock::cli
