// SPDX-License-Identifier: Apache-2.0
// Structs whose fields are visited one after the other, in the order of their declaration.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <tuple>

namespace rlock {

// The base of a struct with so many fields.
template <int count>
struct FieldCount {
  static constexpr int size = count;
};

template <std::size_t length>
struct FixedText {
  char text[length];
  consteval FixedText(const char (&from)[length]) { std::copy_n(from, length, text); }  // NOLINT(*-explicit-*)
};
// The same for one that a word tells from others.
template <FixedText name, int count>
struct Worded : FieldCount<count> {
  static constexpr std::string_view word{name.text};
};

template <typename Value>
concept HasFields = requires
{
  Value::size + 0;
};

// References to the fields.
template <HasFields Value>
constexpr auto fields_of(Value& value)
{
  constexpr int size = Value::size;
  if constexpr (size == 0) {
    return std::tie();
  } else if constexpr (size == 1) {
    auto& [a] = value;
    return std::tie(a);
  } else if constexpr (size == 2) {
    auto& [a, b] = value;
    return std::tie(a, b);
  } else if constexpr (size == 3) {
    auto& [a, b, c] = value;
    return std::tie(a, b, c);
  } else if constexpr (size == 4) {
    auto& [a, b, c, d] = value;
    return std::tie(a, b, c, d);
  } else if constexpr (size == 5) {
    auto& [a, b, c, d, e] = value;
    return std::tie(a, b, c, d, e);
  } else if constexpr (size == 6) {
    auto& [a, b, c, d, e, f] = value;
    return std::tie(a, b, c, d, e, f);
  } else if constexpr (size == 7) {
    auto& [a, b, c, d, e, f, g] = value;
    return std::tie(a, b, c, d, e, f, g);
  } else if constexpr (size == 8) {
    auto& [a, b, c, d, e, f, g, h] = value;
    return std::tie(a, b, c, d, e, f, g, h);
  } else if constexpr (size == 10) {
    auto& [a, b, c, d, e, f, g, h, i, j] = value;
    return std::tie(a, b, c, d, e, f, g, h, i, j);
  } else if constexpr (size == 11) {
    auto& [a, b, c, d, e, f, g, h, i, j, k] = value;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k);
  } else {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m] = value;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m);
  }
}

}  // namespace rlock
