// SPDX-License-Identifier: Apache-2.0
// Documents in BSON: what is sent to a MongoDB server, and what comes back. libmongoc must be loaded. Private to stores/mongo.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include "stores/mongo/libmongoc.h"

namespace rlock::mongo {

// A document under construction.
class Document {
 public:
  Document();
  ~Document();
  Document(Document&& other) noexcept;
  Document& operator=(Document&& other) noexcept;
  Document(const Document&) = delete;
  Document& operator=(const Document&) = delete;
  // Keys are no longer than their text up to a zero byte.
  Document& add(std::string_view key, std::string_view text);
  Document& add(std::string_view key, const char* text) { return add(key, std::string_view(text)); }
  Document& add(std::string_view key, std::int64_t number);
  Document& add(std::string_view key, const Document& inner);
  template <typename Element>  // Document or std::string
  Document& add(std::string_view key, const std::vector<Element>& elements);
  Document& add_flag(std::string_view key, bool flag);
  Document& add_small(std::string_view key, std::int32_t number);
  Document& add_binary(std::string_view key, std::string_view bytes);
  Document& add_time(std::string_view key, std::int64_t ms);  // since 1970

  [[nodiscard]] const bson_t* bson() const { return m_bson; }
  [[nodiscard]] bool is_empty() const { return m_is_empty; }
  [[nodiscard]] std::string bytes() const;

 private:
  Document& appended(bool done);

  bson_t* m_bson;
  bool m_is_empty = true;
};

class Field;

// A document that was received. A view; what is malformed ends it.
class Fields {
 public:
  Fields() = default;
  explicit Fields(std::string_view bytes) : m_bytes(bytes) {}
  [[nodiscard]] std::optional<Field> find(const char* key) const;
  [[nodiscard]] std::vector<Field> all() const;
  // The values of these fields, with a default for a field that is missing or has another type.
  [[nodiscard]] std::int64_t number(const char* key) const;
  [[nodiscard]] std::string text(const char* key) const;
  [[nodiscard]] bool flag(const char* key) const;
  [[nodiscard]] Fields inner(const char* key) const;  // of a document or an array

 private:
  std::string_view m_bytes;
};

class Field {
 public:
  explicit Field(const bson_iter_t& at) : m_at(at) {}
  [[nodiscard]] std::string key() const;
  [[nodiscard]] std::optional<std::string> text() const;
  [[nodiscard]] std::optional<std::string> binary() const;
  [[nodiscard]] std::optional<std::int64_t> integer() const;  // of a 64-bit integer only
  [[nodiscard]] std::optional<std::int64_t> time_ms() const;
  [[nodiscard]] std::int64_t number() const;  // of any number; else 0
  [[nodiscard]] bool flag() const;
  [[nodiscard]] Fields inner() const;

 private:
  bson_iter_t m_at;
};

// An answer, which owns its bytes.
class Answer {
 public:
  explicit Answer(std::string bytes) : m_bytes(std::move(bytes)) {}
  [[nodiscard]] Fields fields() const { return Fields(m_bytes); }
  // The documents of the first batch of a cursor.
  [[nodiscard]] std::vector<Fields> batch() const;

 private:
  std::string m_bytes;
};

bool is_utf8(std::string_view text);

}  // namespace rlock::mongo
