// SPDX-License-Identifier: Apache-2.0
// When a keep-alive of etcd is a proof; and the messages of etcd.
#include "stores/etcd/etcd_presences.h"
#include "support/test.h"

using namespace rlock::test;

namespace {

constexpr Instant sent_at{5s};

etcd::LeaseAnswer kept(std::uint64_t member, std::uint64_t term, std::int64_t ttl)
{
  return {.header = {.member = member, .raft_term = term}, .id = 7, .ttl = ttl};
}

etcd::TxnAnswer committed(std::uint64_t member, std::uint64_t term)
{
  return {.header = {.member = member, .raft_term = term}, .succeeded = true, .answers = {}};
}

// The key has another create revision than the one that was compared.
etcd::TxnAnswer other_key(std::uint64_t member, std::uint64_t term)
{
  return {.header = {.member = member, .raft_term = term}, .succeeded = false, .answers = {}};
}

std::string show(const std::optional<record::Proof>& proof)
{
  if (!proof) {
    return "unproven";
  }
  const auto* const term = std::get_if<LeaseTerm>(&*proof);
  if (term == nullptr) {
    return "gone";
  }
  CHECK(term->from == sent_at);
  return std::to_string(term->length.count());
}

}  // namespace

TEST_CASE("etcd presences: what the answers to a keep-alive and to the commit after it prove")
{
  struct Row {
    const char* why;
    etcd::LeaseAnswer kept;
    etcd::TxnAnswer committed;
    std::int64_t create_revision;
    const char* expect;
  };
  const Row rows[] = {
      {"one leader, and the key is there", kept(1, 4, 6), committed(1, 4), 9, "6000"},
      {"a new term: the leader that renewed may have been deposed", kept(1, 4, 6), committed(1, 5), 9, "unproven"},
      {"another member", kept(1, 4, 6), committed(2, 4), 9, "unproven"},
      {"the lease is over, says a member alone", kept(1, 4, 0), committed(1, 4), 9, "unproven"},
      {"the key is gone, or another one", kept(1, 4, 6), other_key(1, 4), 9, "gone"},
      {"the key is gone, in a new term too", kept(1, 4, 0), other_key(1, 5), 9, "gone"},
      {"no commit has put the key yet", kept(1, 4, 6), committed(1, 4), 0, "6000"},
      {"no key yet, and the lease is over", kept(1, 4, 0), committed(1, 4), 0, "gone"},
      {"no key yet, and the lease is over, but a new term", kept(1, 4, 0), committed(1, 5), 0, "unproven"},
      {"no key yet as far as is known, and the lease is over, but there is a key", kept(1, 4, 0), other_key(1, 4), 0,
       "unproven"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.why);
    CHECK(show(etcd::proof_of(row.kept, row.committed, row.create_revision, sent_at)) == row.expect);
  }
}

TEST_CASE("etcd presences: a proof is a commit, also when the space of etcd is used up")
{
  const etcd::Txn txn = etcd::commit_of_proof("k", 9);
  REQUIRE(txn.compare.size() == 1);
  CHECK(txn.compare.front().key == "k");
  CHECK(txn.compare.front().revision == 9);
  bool is_read = true;
  for (const auto* branch : {&txn.success, &txn.failure}) {
    for (const etcd::Operation& each : *branch) {
      is_read = is_read && std::holds_alternative<etcd::Range>(each);
      CHECK_FALSE(std::holds_alternative<etcd::Put>(each));  // needs room
      const auto* const deletion = std::get_if<etcd::Delete>(&each);
      CHECK((deletion == nullptr || deletion->key != "k"));
    }
  }
  CHECK_FALSE(is_read);  // etcd serves a transaction of reads alone without a commit
}

TEST_CASE("etcd presences: a lease has whole seconds, and a name that tells its number")
{
  CHECK(etcd::seconds_of(1ms) == 1);
  CHECK(etcd::seconds_of(2000ms) == 2);
  CHECK(etcd::seconds_of(2001ms) == 3);
  CHECK(etcd::name_of_lease(0x1234) == "0000000000001234");
}

TEST_CASE("etcd messages: bytes that are no message are refused, not read")
{
  for (const char* bytes : {"\x0a", "\x0a\x7f", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"}) {
    CAPTURE(bytes);
    CHECK_FALSE(etcd::decode_range(bytes));
    CHECK_FALSE(etcd::decode_txn(bytes));
    CHECK_FALSE(etcd::decode_watch(bytes));
  }
  CHECK_FALSE(etcd::decode_range("\x12\x03\x0a\x05k"));  // a key that is longer than its message
  CHECK(etcd::decode_range("\x18\x01"));
  CHECK(etcd::decode_range("\x1a\x01x"));  // a field of another type is passed over
  CHECK(etcd::decode_range(""));
}

TEST_CASE("etcd messages: the end of a prefix")
{
  CHECK(etcd::end_of_prefix("a/") == "a0");
  CHECK(etcd::end_of_prefix("a\xff") == "b");
  CHECK(etcd::end_of_prefix(std::string("a\0", 2)) == std::string("a\x01"));
}

TEST_CASE("etcd messages: a lease is no longer than etcd gives any")
{
  const auto ttl_in = [](const std::string& number) { return etcd::decode_lease("\x18" + number)->ttl; };
  const std::string ones(8, '\xff');
  CHECK(ttl_in("\x1e") == 30);
  CHECK(ttl_in(ones + "\x7f") == etcd::longest_lease);   // the greatest number
  CHECK(ttl_in(std::string(9, '\x80') + "\x01") == -1);  // the least number
  CHECK(ttl_in(ones + "\xff\x01") == -1);                // -1: there is no such lease
}
