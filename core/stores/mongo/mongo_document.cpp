// SPDX-License-Identifier: Apache-2.0
#include "stores/mongo/mongo_document.h"

#include <new>

namespace rlock::mongo {
namespace {

int length(std::string_view text) { return static_cast<int>(text.size()); }

}  // namespace

Document::Document() : m_bson(lib().bson_new()) {}

Document::~Document() { lib().bson_destroy(m_bson); }  // takes nullptr

Document::Document(Document&& other) noexcept
    : m_bson(std::exchange(other.m_bson, nullptr)), m_is_empty(other.m_is_empty)
{
}

Document& Document::operator=(Document&& other) noexcept
{
  std::swap(m_bson, other.m_bson);
  std::swap(m_is_empty, other.m_is_empty);
  return *this;
}

// It fails when the document would have more than 2 GiB.
Document& Document::appended(bool done)
{
  if (!done) {
    throw std::bad_alloc();
  }
  m_is_empty = false;
  return *this;
}

Document& Document::add(std::string_view key, std::string_view text)
{
  return appended(lib().bson_append_utf8(m_bson, key.data(), length(key), text.data(), length(text)));
}

Document& Document::add(std::string_view key, std::int64_t number)
{
  return appended(lib().bson_append_int64(m_bson, key.data(), length(key), number));
}

Document& Document::add(std::string_view key, const Document& inner)
{
  return appended(lib().bson_append_document(m_bson, key.data(), length(key), inner.bson()));
}

template <typename Element>
Document& Document::add(std::string_view key, const std::vector<Element>& elements)
{
  Document array;
  for (const Element& each : elements) {
    array.add(std::to_string(&each - elements.data()), each);
  }
  return appended(lib().bson_append_array(m_bson, key.data(), length(key), array.bson()));
}
template Document& Document::add(std::string_view key, const std::vector<Document>& elements);
template Document& Document::add(std::string_view key, const std::vector<std::string>& elements);

Document& Document::add_flag(std::string_view key, bool flag)
{
  return appended(lib().bson_append_bool(m_bson, key.data(), length(key), flag));
}

Document& Document::add_small(std::string_view key, std::int32_t number)
{
  return appended(lib().bson_append_int32(m_bson, key.data(), length(key), number));
}

Document& Document::add_binary(std::string_view key, std::string_view bytes)
{
  const auto* const data = reinterpret_cast<const std::uint8_t*>(bytes.data());
  return appended(lib().bson_append_binary(m_bson, key.data(), length(key), BSON_SUBTYPE_BINARY, data,
                                           static_cast<std::uint32_t>(bytes.size())));
}

Document& Document::add_time(std::string_view key, std::int64_t ms)
{
  return appended(lib().bson_append_date_time(m_bson, key.data(), length(key), ms));
}

std::string Document::bytes() const
{
  return {reinterpret_cast<const char*>(lib().bson_get_data(m_bson)), m_bson->len};
}

// libbson ends the process when there are no bytes at all.
std::optional<Field> Fields::find(const char* key) const
{
  if (m_bytes.empty()) {
    return std::nullopt;
  }
  bson_iter_t at;
  const auto* const data = reinterpret_cast<const std::uint8_t*>(m_bytes.data());
  const bool found = lib().bson_iter_init_from_data(&at, data, m_bytes.size()) && lib().bson_iter_find(&at, key);
  return found ? std::optional(Field(at)) : std::nullopt;
}

std::vector<Field> Fields::all() const
{
  std::vector<Field> found;
  if (m_bytes.empty()) {
    return found;
  }
  bson_iter_t at;
  if (lib().bson_iter_init_from_data(&at, reinterpret_cast<const std::uint8_t*>(m_bytes.data()), m_bytes.size())) {
    while (lib().bson_iter_next(&at)) {
      found.emplace_back(at);
    }
  }
  return found;
}

std::int64_t Fields::number(const char* key) const
{
  const auto field = find(key);
  return field ? field->number() : 0;
}

std::string Fields::text(const char* key) const
{
  const auto field = find(key);
  return field ? field->text().value_or("") : "";
}

bool Fields::flag(const char* key) const
{
  const auto field = find(key);
  return field && field->flag();
}

Fields Fields::inner(const char* key) const
{
  const auto field = find(key);
  return field ? field->inner() : Fields();
}

std::string Field::key() const { return lib().bson_iter_key(&m_at); }

std::optional<std::string> Field::text() const
{
  if (lib().bson_iter_type(&m_at) != BSON_TYPE_UTF8) {
    return std::nullopt;
  }
  std::uint32_t size = 0;
  const char* const text = lib().bson_iter_utf8(&m_at, &size);
  return std::string(text, size);
}

std::optional<std::string> Field::binary() const
{
  if (lib().bson_iter_type(&m_at) != BSON_TYPE_BINARY) {
    return std::nullopt;
  }
  bson_subtype_t subtype = BSON_SUBTYPE_BINARY;
  std::uint32_t size = 0;
  const std::uint8_t* data = nullptr;
  lib().bson_iter_binary(&m_at, &subtype, &size, &data);
  return std::string(reinterpret_cast<const char*>(data), size);
}

std::optional<std::int64_t> Field::integer() const
{
  return lib().bson_iter_type(&m_at) == BSON_TYPE_INT64 ? std::optional(lib().bson_iter_as_int64(&m_at)) : std::nullopt;
}

std::optional<std::int64_t> Field::time_ms() const
{
  return lib().bson_iter_type(&m_at) == BSON_TYPE_DATE_TIME ? std::optional(lib().bson_iter_date_time(&m_at))
                                                            : std::nullopt;
}

std::int64_t Field::number() const { return lib().bson_iter_as_int64(&m_at); }

bool Field::flag() const { return lib().bson_iter_as_bool(&m_at); }

Fields Field::inner() const
{
  std::uint32_t size = 0;
  const std::uint8_t* data = nullptr;
  switch (lib().bson_iter_type(&m_at)) {
    case BSON_TYPE_DOCUMENT: lib().bson_iter_document(&m_at, &size, &data); break;
    case BSON_TYPE_ARRAY: lib().bson_iter_array(&m_at, &size, &data); break;
    default: return {};
  }
  return Fields({reinterpret_cast<const char*>(data), size});
}

std::vector<Fields> Answer::batch() const
{
  std::vector<Fields> documents;
  for (const Field& each : fields().inner("cursor").inner("firstBatch").all()) {
    documents.push_back(each.inner());
  }
  return documents;
}

bool is_utf8(std::string_view text) { return lib().bson_utf8_validate(text.data(), text.size(), false); }

}  // namespace rlock::mongo
