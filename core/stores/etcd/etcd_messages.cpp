// SPDX-License-Identifier: Apache-2.0
#include "stores/etcd/etcd_messages.h"

#include <algorithm>
#include <exception>
#include <protozero/pbf_reader.hpp>
#include <protozero/pbf_writer.hpp>

namespace rlock::etcd {
namespace {

using protozero::pbf_reader;
using protozero::pbf_wire_type;
using protozero::pbf_writer;

// A field with this number: of text, bytes or a message; of an integer, a bool or an enum.
constexpr std::uint32_t bytes(protozero::pbf_tag_type tag)
{
  return protozero::tag_and_type(tag, pbf_wire_type::length_delimited);
}
constexpr std::uint32_t number(protozero::pbf_tag_type tag)
{
  return protozero::tag_and_type(tag, pbf_wire_type::varint);
}

void write(pbf_writer& out, const Range& range)
{
  out.add_bytes(1, range.key);
  if (!range.range_end.empty()) {
    out.add_bytes(2, range.range_end);
  }
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

void write(pbf_writer& out, const Delete& deletion)
{
  out.add_bytes(1, deletion.key);
  if (!deletion.range_end.empty()) {
    out.add_bytes(2, deletion.range_end);
  }
}

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

// pbf_reader::get_bool (protozero 1.7) reads the byte behind a message that ends with the tag of a bool.
bool flag_in(pbf_reader& in) { return in.get_uint64() != 0; }

Header header_in(pbf_reader in)
{
  Header header;
  while (in.next()) {
    switch (in.tag_and_type()) {
      case number(1): header.cluster = in.get_uint64(); break;
      case number(2): header.member = in.get_uint64(); break;
      case number(3): header.revision = in.get_int64(); break;
      case number(4): header.raft_term = in.get_uint64(); break;
      default: in.skip();
    }
  }
  return header;
}

KeyValue key_in(pbf_reader in)
{
  KeyValue key;
  while (in.next()) {
    switch (in.tag_and_type()) {
      case bytes(1): key.key = in.get_bytes(); break;
      case number(2): key.create_revision = in.get_int64(); break;
      case number(3): key.mod_revision = in.get_int64(); break;
      case bytes(5): key.value = in.get_bytes(); break;
      case number(6): key.lease = in.get_int64(); break;
      default: in.skip();
    }
  }
  return key;
}

RangeAnswer range_in(pbf_reader in)
{
  RangeAnswer answer;
  while (in.next()) {
    switch (in.tag_and_type()) {
      case bytes(1): answer.header = header_in(in.get_message()); break;
      case bytes(2): answer.keys.push_back(key_in(in.get_message())); break;
      case number(3): answer.has_more = flag_in(in); break;
      default: in.skip();
    }
  }
  return answer;
}

// A ResponseOp has one field; that of a Range has the number 1.
RangeAnswer operation_in(pbf_reader in)
{
  RangeAnswer answer;
  while (in.next()) {
    if (in.tag_and_type() == bytes(1)) {
      answer = range_in(in.get_message());
    } else {
      in.skip();
    }
  }
  return answer;
}

TxnAnswer txn_in(pbf_reader in)
{
  TxnAnswer answer;
  while (in.next()) {
    switch (in.tag_and_type()) {
      case bytes(1): answer.header = header_in(in.get_message()); break;
      case number(2): answer.succeeded = flag_in(in); break;
      case bytes(3): answer.answers.push_back(operation_in(in.get_message())); break;
      default: in.skip();
    }
  }
  return answer;
}

LeaseAnswer lease_in(pbf_reader in)
{
  LeaseAnswer answer;
  while (in.next()) {
    switch (in.tag_and_type()) {
      case bytes(1): answer.header = header_in(in.get_message()); break;
      case number(2): answer.id = in.get_int64(); break;
      case number(3): answer.ttl = std::clamp<std::int64_t>(in.get_int64(), -1, longest_lease); break;
      default: in.skip();
    }
  }
  return answer;
}

WatchEvent event_in(pbf_reader in)
{
  WatchEvent event{.is_put = true, .key = {}};  // a put has the number 0, which is left out
  while (in.next()) {
    switch (in.tag_and_type()) {
      case number(1): event.is_put = in.get_enum() == 0; break;
      case bytes(2): event.key = key_in(in.get_message()); break;
      default: in.skip();
    }
  }
  return event;
}

WatchAnswer watch_in(pbf_reader in)
{
  WatchAnswer answer;
  while (in.next()) {
    switch (in.tag_and_type()) {
      case bytes(1): answer.header = header_in(in.get_message()); break;
      case number(2): answer.id = in.get_int64(); break;
      case number(3): answer.is_created = flag_in(in); break;
      case number(4): answer.is_canceled = flag_in(in); break;
      case bytes(6): answer.cancel_reason = in.get_string(); break;
      case bytes(11): answer.events.push_back(event_in(in.get_message())); break;
      default: in.skip();
    }
  }
  return answer;
}

StatusAnswer status_in(pbf_reader in)
{
  StatusAnswer answer;
  while (in.next()) {
    switch (in.tag_and_type()) {
      case bytes(1): answer.header = header_in(in.get_message()); break;
      case bytes(2): answer.version = in.get_string(); break;
      case number(3): answer.db_size = in.get_int64(); break;
      case number(4): answer.leader = in.get_uint64(); break;
      case bytes(8): answer.errors.push_back(in.get_string()); break;
      case number(10): answer.is_learner = flag_in(in); break;
      default: in.skip();
    }
  }
  return answer;
}

Member member_in(pbf_reader in)
{
  Member member;
  while (in.next()) {
    switch (in.tag_and_type()) {
      case number(1): member.id = in.get_uint64(); break;
      case bytes(2): member.name = in.get_string(); break;
      case bytes(4): member.client_urls.push_back(in.get_string()); break;
      case number(5): member.is_learner = flag_in(in); break;
      default: in.skip();
    }
  }
  return member;
}

std::vector<Member> members_in(pbf_reader in)
{
  std::vector<Member> members;
  while (in.next(2, pbf_wire_type::length_delimited)) {
    members.push_back(member_in(in.get_message()));
  }
  return members;
}

std::string token_in(pbf_reader in)
{
  std::string token;
  while (in.next(2, pbf_wire_type::length_delimited)) {
    token = in.get_string();
  }
  return token;
}

// protozero throws at bytes that are no message.
template <typename Answer>
std::optional<Answer> decoded(std::string_view message, Answer (*read)(pbf_reader))
{
  try {
    return read(pbf_reader(message.data(), message.size()));
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

}  // namespace

std::string encode(const Range& range)
{
  std::string bytes;
  pbf_writer out(bytes);
  write(out, range);
  return bytes;
}

std::string encode(const Txn& txn)
{
  std::string bytes;
  pbf_writer out(bytes);
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
  return bytes;
}

std::string encode_lease_grant(std::int64_t id, std::int64_t ttl)
{
  std::string bytes;
  pbf_writer out(bytes);
  out.add_int64(1, ttl);
  out.add_int64(2, id);
  return bytes;
}

std::string encode_lease(std::int64_t id)
{
  std::string bytes;
  pbf_writer(bytes).add_int64(1, id);
  return bytes;
}

std::string encode_watch(const Range& range, std::int64_t id, std::int64_t revision, Watched what)
{
  constexpr int no_puts = 0;
  constexpr int no_deletions = 1;
  std::string bytes;
  pbf_writer out(bytes);
  pbf_writer create(out, 1);
  create.add_bytes(1, range.key);
  if (!range.range_end.empty()) {
    create.add_bytes(2, range.range_end);
  }
  create.add_int64(3, revision);
  create.add_enum(5, what == Watched::puts ? no_deletions : no_puts);
  create.add_int64(7, id);
  create.commit();
  return bytes;
}

std::string encode_watch_cancel(std::int64_t id)
{
  std::string bytes;
  pbf_writer out(bytes);
  pbf_writer cancel(out, 2);
  cancel.add_int64(1, id);
  cancel.commit();
  return bytes;
}

std::string encode_authenticate(std::string_view user, std::string_view password)
{
  std::string bytes;
  pbf_writer out(bytes);
  out.add_string(1, user.data(), user.size());
  out.add_string(2, password.data(), password.size());
  return bytes;
}

std::optional<RangeAnswer> decode_range(std::string_view bytes) { return decoded(bytes, range_in); }
std::optional<TxnAnswer> decode_txn(std::string_view bytes) { return decoded(bytes, txn_in); }
std::optional<LeaseAnswer> decode_lease(std::string_view bytes) { return decoded(bytes, lease_in); }
std::optional<WatchAnswer> decode_watch(std::string_view bytes) { return decoded(bytes, watch_in); }
std::optional<StatusAnswer> decode_status(std::string_view bytes) { return decoded(bytes, status_in); }
std::optional<std::vector<Member>> decode_members(std::string_view bytes) { return decoded(bytes, members_in); }
std::optional<std::string> decode_token(std::string_view bytes) { return decoded(bytes, token_in); }

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
