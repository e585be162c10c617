// SPDX-License-Identifier: Apache-2.0
// Colours of text for people: SGR sequences of ECMA-48, which every terminal that has colours understands.
#pragma once

#include <string>
#include <string_view>

namespace rlock::cli {

enum class Style { bold, red, green, yellow, inverse };

class Colours {
 public:
  explicit Colours(bool on = false) : m_on(on) {}

  // `text` in that style, and the terminal's own style after it. Without colours: the text.
  [[nodiscard]] std::string paint(Style style, std::string_view text) const;

 private:
  bool m_on;
};

}  // namespace rlock::cli
