// SPDX-License-Identifier: Apache-2.0
// The messages of etcd's API version 3 that rlock sends and reads, as protocol buffers (rpc.proto, kv.proto and auth.proto of
// etcd). Fields that rlock does not use are left out. Encoding cannot fail; decoding returns nullopt for what is no such message.
// Private to stores/etcd.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace rlock::etcd {

// What each answer begins with.
struct Header {
  std::uint64_t cluster = 0;
  std::uint64_t member = 0;  // that answers
  std::int64_t revision = 0;
  std::uint64_t raft_term = 0;
};

struct KeyValue {
  std::string key;
  std::int64_t create_revision = 0;
  std::int64_t mod_revision = 0;
  std::int64_t lease = 0;
  std::string value;
};

// The keys from `key` up to `range_end`, which is not among them; an empty range_end: this one key.
struct Range {
  std::string key;
  std::string range_end = {};
  std::int64_t limit = 0;  // 0: all
  bool keys_only = false;
  bool oldest_first = false;  // by create revision, instead of by key
};
struct Put {
  std::string key;
  std::string value;
  std::int64_t lease = 0;  // with which the key ends; 0: none
};
struct Delete {
  std::string key;
  std::string range_end = {};
};
using Operation = std::variant<Range, Put, Delete>;

// The key has such a revision, or each key of the range has; the revision of a key that is not there is 0.
struct Compare {
  enum class Target : int { create = 1, modification = 2 };
  enum class Result : int { equal = 0, greater = 1, less = 2, not_equal = 3 };
  Target target;
  Result result;
  std::string key;
  std::int64_t revision = 0;
  std::string range_end = {};  // as in Range
};

// One transaction: where all comparisons hold, `success`, else `failure`. No key is written twice.
constexpr std::size_t most_operations = 128;  // of one transaction, as etcd permits (--max-txn-ops)
struct Txn {
  std::vector<Compare> compare = {};
  std::vector<Operation> success = {};
  std::vector<Operation> failure = {};
};

struct RangeAnswer {
  Header header;
  std::vector<KeyValue> keys;
  bool has_more = false;
};
struct TxnAnswer {
  Header header;
  bool succeeded = false;
  std::vector<RangeAnswer> answers;  // of each operation that was carried out; only a Range has keys
};
constexpr std::int64_t longest_lease = 9'000'000'000;  // in seconds; etcd refuses more

struct LeaseAnswer {  // of Grant, KeepAlive and TimeToLive
  Header header;
  std::int64_t id = 0;
  std::int64_t ttl = 0;  // in seconds, at most longest_lease; 0 or less: the lease is over
};
struct WatchEvent {
  bool is_deletion = false;  // of the key; else a Put
  KeyValue key;
};
struct WatchAnswer {
  Header header;
  std::int64_t id = 0;
  bool is_created = false;
  bool is_canceled = false;
  std::string cancel_reason;
  std::vector<WatchEvent> events;
};
struct StatusAnswer {
  Header header;
  std::string version;
  std::int64_t db_size = 0;
  std::uint64_t leader = 0;  // 0: the member knows none
  std::vector<std::string> errors;
  bool is_learner = false;
};
struct Member {
  std::uint64_t id = 0;
  std::string name;  // empty: the member has not started
  std::vector<std::string> client_urls;
  bool is_learner = false;
};

std::string encode(const Range& range);
std::string encode(const Txn& txn);
std::string encode_lease_grant(std::int64_t id, std::int64_t ttl);
std::string encode_lease(std::int64_t id);  // for KeepAlive, Revoke and TimeToLive
// Watches the range from the revision on. 0: from now on.
enum class Watched { puts, deletions };
std::string encode_watch(const Range& range, std::int64_t id, std::int64_t revision, Watched what);
std::string encode_watch_cancel(std::int64_t id);
std::string encode_authenticate(std::string_view user, std::string_view password);

std::optional<RangeAnswer> decode_range(std::string_view bytes);
std::optional<TxnAnswer> decode_txn(std::string_view bytes);
std::optional<LeaseAnswer> decode_lease(std::string_view bytes);
std::optional<WatchAnswer> decode_watch(std::string_view bytes);
std::optional<StatusAnswer> decode_status(std::string_view bytes);
std::optional<std::vector<Member>> decode_members(std::string_view bytes);
std::optional<std::string> decode_token(std::string_view bytes);  // of Authenticate

// The range_end of all keys that begin with `prefix`, which is not empty.
std::string end_of_prefix(std::string prefix);

}  // namespace rlock::etcd
