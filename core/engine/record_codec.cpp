// SPDX-License-Identifier: Apache-2.0
// The bytes: format, log_base, in the format with presences the time, the number of owners and for each owner its name, the number of
// its presences, and for each its id, lease and keeping, then for each key its name, expiry in ms (0: none), type, the number of its parts, and the parts. A
// number is a varint (base/varint.h). A text has its length before it. A score is the 8 bytes of a double.
#include "engine/record_codec.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <optional>
#include <utility>
#include "base/varint.h"

namespace rlock::record {
namespace {

constexpr std::string_view any_format = "rlock";
constexpr std::string_view format = "rlock1\n";
constexpr std::string_view format_with_presences = "rlock2\n";

// Greater numbers are damage: of entries of a log, or of milliseconds since 1970.
constexpr auto greatest_number = static_cast<std::uint64_t>(latest_expiry);

void put(std::string& out, std::uint64_t number) { put_varint(out, number); }

void put(std::string& out, std::string_view text)
{
  put(out, text.size());
  out += text;
}

void put(std::string& out, double score)
{
  const auto bits = std::bit_cast<std::uint64_t>(score);
  for (unsigned shift = 0; shift < 64; shift += 8) {
    out += static_cast<char>(bits >> shift);
  }
}

struct Writer {
  std::string& out;

  void operator()(const std::string& text) const { put(out, text); }
  void operator()(const Hash& hash) const
  {
    put(out, hash.size());
    for (const auto& [field, value] : hash) {
      put(out, field);
      put(out, value);
    }
  }
  void operator()(const SortedSet& set) const
  {
    put(out, set.scores.size());
    for (const auto& [member, score] : set.scores) {
      put(out, member);
      put(out, score);
    }
  }
  void operator()(const List& list) const
  {
    put(out, list.size());
    for (const std::string& element : list) {
      put(out, element);
    }
  }
};

// Reads parts one after the other. After a part that is not there, everything reads as 0 or empty.
class Parser {
 public:
  explicit Parser(std::string_view bytes) : m_rest(bytes) {}
  [[nodiscard]] bool at_end() const { return m_rest.empty() || m_is_bad; }
  [[nodiscard]] bool is_bad() const { return m_is_bad; }

  // At most greatest_number.
  std::int64_t number()
  {
    const std::uint64_t value = take_varint(m_rest).value_or(greatest_number + 1);
    m_is_bad = m_is_bad || value > greatest_number;
    return m_is_bad ? 0 : static_cast<std::int64_t>(value);
  }
  std::string text()
  {
    const auto size = static_cast<std::uint64_t>(number());
    if (size > m_rest.size()) {
      m_is_bad = true;
      return {};
    }
    std::string found(m_rest.substr(0, size));
    m_rest.remove_prefix(size);
    return found;
  }
  double score()
  {
    constexpr std::size_t size = 8;
    if (m_rest.size() < size) {
      m_is_bad = true;
      return 0;
    }
    std::uint64_t bits = 0;
    for (std::size_t i = 0; i < size; ++i) {
      bits |= static_cast<std::uint64_t>(static_cast<unsigned char>(m_rest[i])) << (8 * i);
    }
    m_rest.remove_prefix(size);
    const auto found = std::bit_cast<double>(bits);
    m_is_bad = m_is_bad || std::isnan(found);  // has no place in an order
    return m_is_bad ? 0 : found;
  }

  // Calls `read` for each part of a key. A key without parts does not exist.
  template <typename Read>
  void parts(const Read& read)
  {
    auto left = number();
    m_is_bad = m_is_bad || left == 0;
    for (; left > 0 && !m_is_bad; --left) {
      read();
    }
  }

  // nullopt: an unknown type.
  std::optional<decltype(Entry::data)> data()
  {
    switch (number()) {
      case 0: return text();
      case 1: {
        Hash hash;
        parts([&] {
          std::string field = text();
          hash.emplace_back(std::move(field), text());
        });
        return hash;
      }
      case 2: {
        SortedSet set;
        parts([&] {
          const std::string member = text();
          set.add(member, score());
        });
        return set;
      }
      case 3: {
        List list;
        parts([&] { list.push_back(text()); });
        return list;
      }
      default: return std::nullopt;
    }
  }

 private:
  std::string_view m_rest;
  bool m_is_bad = false;
};

void put(std::string& out, const Bindings& bindings)
{
  put(out, bindings.size());
  for (const auto& [owner, presences] : bindings) {
    put(out, owner);
    put(out, presences.size());
    for (const BoundPresence& each : presences) {
      put(out, each.id);
      put(out, static_cast<std::uint64_t>(each.lease_ms));
      put(out, static_cast<std::uint64_t>(each.keeping));
    }
  }
}

Bindings bindings_in(Parser& in)
{
  Bindings bindings;
  for (auto owners = in.number(); owners > 0 && !in.is_bad(); --owners) {
    std::vector<BoundPresence>& presences = bindings[in.text()];
    in.parts([&] {
      PresenceId id = in.text();
      const std::int64_t lease_ms = in.number();
      presences.push_back(
          {.id = std::move(id), .lease_ms = lease_ms, .keeping = in.number() == 0 ? Keeping::kept : Keeping::unkept});
    });
  }
  return bindings;
}

Error not_readable(std::string_view why) { return {ErrorCode::config, "the record of the lock " + std::string(why)}; }

}  // namespace

std::string encode(const LockRecord& record)
{
  const bool has_presences = record.time_us > 0 || !record.bindings.empty();
  if (record.keys.empty() && record.log_base == 0 && !has_presences) {
    return {};
  }
  std::string out(has_presences ? format_with_presences : format);
  put(out, static_cast<std::uint64_t>(record.log_base));
  if (has_presences) {
    put(out, static_cast<std::uint64_t>(record.time_us));
    put(out, record.bindings);
  }
  for (const auto& [key, entry] : record.keys) {
    put(out, key);
    put(out, static_cast<std::uint64_t>(entry.expires.value_or(0)));
    put(out, entry.data.index());
    std::visit(Writer{out}, entry.data);
  }
  return out;
}

Result<LockRecord> decode(std::string_view bytes)
{
  LockRecord record;
  if (bytes.empty()) {
    return record;
  }
  const bool has_presences = bytes.starts_with(format_with_presences);
  if (!has_presences && !bytes.starts_with(format)) {
    return not_readable(bytes.starts_with(any_format)
                            ? "was written by a newer version of rlock (install that version here)"
                            : "is damaged, or another program's");
  }
  Parser in(bytes.substr(format.size()));
  record.log_base = in.number();
  if (has_presences) {
    record.time_us = in.number();
    record.bindings = bindings_in(in);
  }
  while (!in.at_end()) {
    std::string key = in.text();
    const std::int64_t expires = in.number();
    auto data = in.data();
    if (!data) {
      return not_readable("is damaged, or another program's");
    }
    record.keys.emplace(std::move(key), Entry{.data = *std::move(data),
                                              .expires = expires == 0 ? std::nullopt : std::optional(expires)});
  }
  return !in.is_bad() ? Result(std::move(record)) : not_readable("is damaged, or another program's");
}

}  // namespace rlock::record
