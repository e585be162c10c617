// SPDX-License-Identifier: Apache-2.0
// The kinds of lock. Each kind is an alternative of LockKind and a row of the table. Which scripts each kind has, on every engine, is
// in the table of engine/script_call.cpp.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>
#include <variant>

namespace rlock {

struct Plain {};   // one holder
struct Reader {};  // holds a read-write lock together with other readers
struct Writer {};  // holds a read-write lock alone
struct Permits {
  unsigned limit;  // holders at a time. 0: not known
};
struct StringLock {};  // one holder, in a layout whose foreign clients poll
using LockKind = std::variant<Plain, Reader, Writer, Permits, StringLock>;

// 0: another kind, or not known.
constexpr unsigned number_of_permits(const LockKind& kind)
{
  const auto* const permits = std::get_if<Permits>(&kind);
  return permits != nullptr ? permits->limit : 0;
}

// Whose clients a lock excludes beside those of rlock: the own lock clients of a store (engine/native_line.h).
enum class NativeFormat {
  none,
  etcd,     // etcdctl lock, and the lock service of etcd
  curator,  // InterProcessMutex of Curator, in ZooKeeper; of a reader or a writer: its InterProcessReadWriteLock
  kazoo,    // Lock of kazoo, in ZooKeeper
};
inline constexpr std::array<std::string_view, 4> native_formats{"", "etcd", "curator", "kazoo"};
constexpr std::string_view name_of(NativeFormat format) { return native_formats[static_cast<std::size_t>(format)]; }
// NativeFormat::none: the name of another layout.
constexpr NativeFormat native_format(std::string_view name)
{
  const auto* const known = std::ranges::find(native_formats, name);
  return known == native_formats.end() ? NativeFormat::none : static_cast<NativeFormat>(known - native_formats.begin());
}
// Whether a lock of these clients ends with the session of its client, so that it has no ttl.
constexpr bool ends_with_session(NativeFormat format)
{
  return format == NativeFormat::curator || format == NativeFormat::kazoo;
}
// Whether these clients also have a read-write lock.
constexpr bool knows_readers(NativeFormat format) { return format == NativeFormat::curator; }
// The values of --format: the layouts of Redis, then the native formats.
inline constexpr std::string_view format_names = "redisson|string|etcd|curator|kazoo";

// The modes of a read-write lock in requests and in the event log.
inline constexpr std::string_view reader_mode{"read"};
inline constexpr std::string_view writer_mode{"write"};

struct KindDescriptor {
  std::string_view key_content;   // what the key of such a lock holds, in the words of the scripts
  std::string_view with_article;  // the same with its article, for a sentence
  std::string_view advice;        // what a caller that asked for another kind can do
  LockKind inspect_as;            // the mode for inspecting a lock of which only `key_content` is known
  std::string_view status_label;  // the text after "held"
  bool is_shared;                 // other owners may hold the lock beside the caller
  bool is_always_exclusive;       // no mode of this kind is shared
  bool announces_release;         // a foreign holder publishes its release; false: a waiter must poll
};

inline constexpr std::string_view read_write_advice = "take it with -s or -x";

// The rows, in the order of LockKind's alternatives.
inline constexpr std::array<KindDescriptor, std::variant_size_v<LockKind>> kind_table{{
    {.key_content = "lock",
     .with_article = "a lock",
     .advice = "leave out -s, -x, --permits and --format",
     .inspect_as = Plain{},
     .status_label = "",
     .is_shared = false,
     .is_always_exclusive = true,
     .announces_release = true},
    {.key_content = "read-write lock",
     .with_article = "a read-write lock",
     .advice = read_write_advice,
     .inspect_as = Writer{},
     .status_label = ", shared",
     .is_shared = true,
     .is_always_exclusive = false,
     .announces_release = true},
    {.key_content = "read-write lock",
     .with_article = "a read-write lock",
     .advice = read_write_advice,
     .inspect_as = Writer{},
     .status_label = ", exclusive (read-write lock)",
     .is_shared = false,
     .is_always_exclusive = false,
     .announces_release = true},
    {.key_content = "permits",
     .with_article = "permits",
     .advice = "take one with --permits N; if none is held, rlock forget frees the name",
     .inspect_as = Permits{0},
     .status_label = ", permits",
     .is_shared = true,
     .is_always_exclusive = false,
     .announces_release = true},
    {.key_content = "string",
     .with_article = "a string",
     .advice = "if it is a lock, take it with --format string",
     .inspect_as = StringLock{},
     .status_label = " (format string)",
     .is_shared = false,
     .is_always_exclusive = true,
     .announces_release = false},
}};

constexpr const KindDescriptor& kind_of(const LockKind& kind) { return kind_table[kind.index()]; }

static_assert(kind_of(Reader{}).is_shared && !kind_of(Writer{}).is_shared && kind_of(Permits{0}).is_shared &&
                  kind_of(Plain{}).announces_release && !kind_of(StringLock{}).announces_release,
              "the rows are in the order of LockKind's alternatives");

// The kind for a request about a lock that was inspected. The number of its permits was counted there, and may be that of another
// program: the script knows better.
constexpr LockKind as_inspected(const LockKind& kind)
{
  return std::holds_alternative<Permits>(kind) ? LockKind{Permits{0}} : kind;
}

// The row for what a key holds; nullptr: the key holds no lock.
constexpr const KindDescriptor* kind_in_key(std::string_view key_content)
{
  for (const KindDescriptor& kind : kind_table) {
    if (kind.key_content == key_content) {
      return &kind;
    }
  }
  return nullptr;
}

}  // namespace rlock
