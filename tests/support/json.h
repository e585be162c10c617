// SPDX-License-Identifier: Apache-2.0
// A JSON value that rlock has printed. The parser stands behind json.cpp, because a file that includes it takes seconds to compile.
#pragma once

#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace rlock::test {

// A value, never changed; copies share it. Errors: what is missing or of another type throws, and the case fails.
class Json {
 public:
  Json();  // null
  Json(std::nullptr_t) : Json() {}
  Json(bool value);
  Json(std::int64_t value);
  template <std::integral Number>
  requires(!std::same_as<Number, bool>) Json(Number value) : Json(static_cast<std::int64_t>(value)) {}
  Json(const char* text);
  Json(const std::string& text);

  static Json parse(const std::string& text);

  [[nodiscard]] Json at(const std::string& name) const;
  [[nodiscard]] Json at(std::size_t index) const;
  [[nodiscard]] std::vector<Json> elements() const;
  [[nodiscard]] Json with(const std::string& name, const Json& value) const;  // an object with another value there
  [[nodiscard]] std::size_t size() const;
  [[nodiscard]] bool empty() const { return size() == 0; }

  [[nodiscard]] bool is_null() const;
  [[nodiscard]] bool is_number() const;
  [[nodiscard]] bool is_object() const;
  [[nodiscard]] bool is_string() const;

  [[nodiscard]] std::int64_t number() const;
  [[nodiscard]] bool is_true() const;
  [[nodiscard]] std::string text() const;
  operator std::string() const { return text(); }
  [[nodiscard]] std::string dump() const;  // as JSON

  friend bool operator==(const Json& left, const Json& right);
  friend std::weak_ordering operator<=>(const Json& left, const Json& right);
  friend std::ostream& operator<<(std::ostream& out, const Json& value);

 private:
  struct Value;
  explicit Json(std::shared_ptr<const Value> value) : m_value(std::move(value)) {}
  template <class Part>
  static Json of(Part&& part);
  std::shared_ptr<const Value> m_value;
};

// One value a line.
std::vector<Json> json_lines(const std::string& text);

}  // namespace rlock::test
