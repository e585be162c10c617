// SPDX-License-Identifier: Apache-2.0
#include "stores/etcd/etcd_messages.h"

#include <algorithm>
#include <exception>
#include <protozero/pbf_reader.hpp>
#include <protozero/pbf_writer.hpp>
#include <tuple>
#include <type_traits>
#include <utility>

namespace rlock::etcd {
namespace {

using protozero::pbf_reader;
using protozero::pbf_wire_type;
using protozero::pbf_writer;

// The keys of a range, or the one key.
template <typename Keys>
void write_keys(pbf_writer& out, const Keys& keys)
{
  out.add_bytes(1, keys.key);
  if (!keys.range_end.empty()) {
    out.add_bytes(2, keys.range_end);
  }
}

void write(pbf_writer& out, const Range& range)
{
  write_keys(out, range);
  if (range.limit != 0) {
    out.add_int64(3, range.limit);
  }
  if (range.oldest_first) {
    constexpr int ascending = 1;
    constexpr int by_create_revision = 2;
    out.add_enum(5, ascending);
    out.add_enum(6, by_create_revision);
  }
  if (range.keys_only) {
    out.add_bool(8, true);
  }
}

void write(pbf_writer& out, const Put& put)
{
  out.add_bytes(1, put.key);
  out.add_bytes(2, put.value);
  if (put.lease != 0) {
    out.add_int64(3, put.lease);
  }
}

void write(pbf_writer& out, const Delete& deletion) { write_keys(out, deletion); }

// The alternatives of Operation have the numbers 1, 2 and 3 of RequestOp.
void write(pbf_writer& out, const Operation& operation)
{
  pbf_writer inner(out, static_cast<protozero::pbf_tag_type>(operation.index() + 1));
  std::visit([&](const auto& each) { write(inner, each); }, operation);
}

void write(pbf_writer& out, const Compare& compare)
{
  out.add_enum(1, static_cast<int>(compare.result));
  out.add_enum(2, static_cast<int>(compare.target));
  out.add_bytes(3, compare.key);
  out.add_int64(compare.target == Compare::Target::create ? 5 : 6, compare.revision);
  if (!compare.range_end.empty()) {
    out.add_bytes(64, compare.range_end);
  }
}

// The bytes of a message whose fields `fill(out)` adds.
template <typename Fill>
std::string encoded(Fill fill)
{
  std::string bytes;
  pbf_writer out(bytes);
  fill(out);
  return bytes;
}

// A field that is read, and where its value belongs. Which fields a message has stands in its fields_of; others are passed over.
template <typename Message, typename Value>
struct Field {
  protozero::pbf_tag_type number;
  Value Message::*member;

  // An integer, a bool or an enum; else text, bytes or a message.
  static constexpr auto type = std::is_integral_v<Value> ? pbf_wire_type::varint : pbf_wire_type::length_delimited;
};
template <typename Message, typename Value>
constexpr Field<Message, Value> field(protozero::pbf_tag_type number, Value Message::*member)
{
  return {number, member};
}

constexpr auto fields_of(const Header&)
{
  return std::tuple(field(1, &Header::cluster), field(2, &Header::member), field(3, &Header::revision),
                    field(4, &Header::raft_term));
}
constexpr auto fields_of(const KeyValue&)
{
  return std::tuple(field(1, &KeyValue::key), field(2, &KeyValue::create_revision), field(3, &KeyValue::mod_revision),
                    field(5, &KeyValue::value), field(6, &KeyValue::lease));
}
constexpr auto fields_of(const RangeAnswer&)
{
  return std::tuple(field(1, &RangeAnswer::header), field(2, &RangeAnswer::keys), field(3, &RangeAnswer::has_more));
}
constexpr auto fields_of(const LeaseAnswer&)
{
  return std::tuple(field(1, &LeaseAnswer::header), field(2, &LeaseAnswer::id), field(3, &LeaseAnswer::ttl));
}
constexpr auto fields_of(const WatchEvent&)  // a put has the number 0, a deletion 1
{
  return std::tuple(field(1, &WatchEvent::is_deletion), field(2, &WatchEvent::key));
}
constexpr auto fields_of(const WatchAnswer&)
{
  return std::tuple(field(1, &WatchAnswer::header), field(2, &WatchAnswer::id), field(3, &WatchAnswer::is_created),
                    field(4, &WatchAnswer::is_canceled), field(6, &WatchAnswer::cancel_reason),
                    field(11, &WatchAnswer::events));
}
constexpr auto fields_of(const StatusAnswer&)
{
  return std::tuple(field(1, &StatusAnswer::header), field(2, &StatusAnswer::version), field(3, &StatusAnswer::db_size),
                    field(4, &StatusAnswer::leader), field(8, &StatusAnswer::errors),
                    field(10, &StatusAnswer::is_learner));
}
constexpr auto fields_of(const Member&)
{
  return std::tuple(field(1, &Member::id), field(2, &Member::name), field(4, &Member::client_urls),
                    field(5, &Member::is_learner));
}

// Messages of which callers get the contents.
struct ResponseOp {  // of one operation; only that of a Range is read
  RangeAnswer range;
};
constexpr auto fields_of(const ResponseOp&) { return std::tuple(field(1, &ResponseOp::range)); }
struct TxnResponse {
  Header header;
  bool succeeded = false;
  std::vector<ResponseOp> operations;
};
constexpr auto fields_of(const TxnResponse&)
{
  return std::tuple(field(1, &TxnResponse::header), field(2, &TxnResponse::succeeded),
                    field(3, &TxnResponse::operations));
}
struct MemberList {
  std::vector<Member> members;
};
constexpr auto fields_of(const MemberList&) { return std::tuple(field(2, &MemberList::members)); }
struct Authentication {
  std::string token;
};
constexpr auto fields_of(const Authentication&) { return std::tuple(field(2, &Authentication::token)); }

template <typename Message>
Message message_in(pbf_reader in);

// One value, or the next element of a list.
template <typename Value>
void read(pbf_reader& in, Value& value)
{
  if constexpr (std::is_same_v<Value, std::string>) {
    value = in.get_string();
  } else if constexpr (std::is_same_v<Value, bool>) {
    // pbf_reader::get_bool (protozero 1.7) reads the byte behind a message that ends with the tag of a bool.
    value = in.get_uint64() != 0;
  } else if constexpr (std::is_integral_v<Value>) {
    value = static_cast<Value>(in.get_uint64());
  } else if constexpr (requires { value.emplace_back(); }) {
    read(in, value.emplace_back());
  } else {
    value = message_in<Value>(in.get_message());
  }
}

template <typename Message>
Message message_in(pbf_reader in)
{
  Message message;
  while (in.next()) {
    const auto take = [&](const auto& known) {
      const bool is_this = in.tag_and_type() == protozero::tag_and_type(known.number, known.type);
      if (is_this) {
        read(in, message.*known.member);
      }
      return is_this;
    };
    if (!std::apply([&](const auto&... known) { return (take(known) || ...); }, fields_of(message))) {
      in.skip();
    }
  }
  return message;
}

// protozero throws at bytes that are no message.
template <typename Message>
std::optional<Message> decoded(std::string_view bytes)
{
  try {
    return message_in<Message>(pbf_reader(bytes.data(), bytes.size()));
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

}  // namespace

std::string encode(const Range& range)
{
  return encoded([&](pbf_writer& out) { write(out, range); });
}

std::string encode(const Txn& txn)
{
  return encoded([&](pbf_writer& out) {
    for (const Compare& each : txn.compare) {
      pbf_writer inner(out, 1);
      write(inner, each);
    }
    for (const auto* branch : {&txn.success, &txn.failure}) {
      for (const Operation& each : *branch) {
        pbf_writer inner(out, branch == &txn.success ? 2 : 3);
        write(inner, each);
      }
    }
  });
}

std::string encode_lease_grant(std::int64_t id, std::int64_t ttl)
{
  return encoded([&](pbf_writer& out) {
    out.add_int64(1, ttl);
    out.add_int64(2, id);
  });
}

std::string encode_lease(std::int64_t id)
{
  return encoded([&](pbf_writer& out) { out.add_int64(1, id); });
}

std::string encode_watch(const Range& range, std::int64_t id, std::int64_t revision, Watched what)
{
  constexpr int no_puts = 0;
  constexpr int no_deletions = 1;
  return encoded([&](pbf_writer& out) {
    pbf_writer create(out, 1);
    write_keys(create, range);
    create.add_int64(3, revision);
    create.add_enum(5, what == Watched::puts ? no_deletions : no_puts);
    create.add_int64(7, id);
  });
}

std::string encode_watch_cancel(std::int64_t id)
{
  return encoded([&](pbf_writer& out) { pbf_writer(out, 2).add_int64(1, id); });
}

std::string encode_authenticate(std::string_view user, std::string_view password)
{
  return encoded([&](pbf_writer& out) {
    out.add_string(1, user.data(), user.size());
    out.add_string(2, password.data(), password.size());
  });
}

std::optional<RangeAnswer> decode_range(std::string_view bytes) { return decoded<RangeAnswer>(bytes); }
std::optional<WatchAnswer> decode_watch(std::string_view bytes) { return decoded<WatchAnswer>(bytes); }
std::optional<StatusAnswer> decode_status(std::string_view bytes) { return decoded<StatusAnswer>(bytes); }

std::optional<TxnAnswer> decode_txn(std::string_view bytes)
{
  auto response = decoded<TxnResponse>(bytes);
  if (!response) {
    return std::nullopt;
  }
  TxnAnswer answer{.header = response->header, .succeeded = response->succeeded, .answers = {}};
  for (ResponseOp& each : response->operations) {
    answer.answers.push_back(std::move(each.range));
  }
  return answer;
}

std::optional<LeaseAnswer> decode_lease(std::string_view bytes)
{
  auto answer = decoded<LeaseAnswer>(bytes);
  if (answer) {
    answer->ttl = std::clamp<std::int64_t>(answer->ttl, -1, longest_lease);
  }
  return answer;
}

std::optional<std::vector<Member>> decode_members(std::string_view bytes)
{
  auto list = decoded<MemberList>(bytes);
  return list ? std::optional(std::move(list->members)) : std::nullopt;
}

std::optional<std::string> decode_token(std::string_view bytes)
{
  auto answer = decoded<Authentication>(bytes);
  return answer ? std::optional(std::move(answer->token)) : std::nullopt;
}

std::string end_of_prefix(std::string prefix)
{
  while (!prefix.empty() && static_cast<unsigned char>(prefix.back()) == 0xFFU) {
    prefix.pop_back();
  }
  if (!prefix.empty()) {
    prefix.back() = static_cast<char>(static_cast<unsigned char>(prefix.back()) + 1);
  }
  return prefix;
}

}  // namespace rlock::etcd
