// SPDX-License-Identifier: Apache-2.0
// The messages of etcd, and the proof that they make. Input: a digit for the create revision of the presence; the answer to a
// keep-alive, up to a byte 0x1e; then another message.
#include "fuzz/fuzzer.h"
#include "stores/etcd/etcd_messages.h"
#include "stores/etcd/etcd_presences.h"

#include <variant>

namespace rlock::test {
namespace {

using namespace etcd;

std::size_t size_of(const std::vector<KeyValue>& keys)
{
  std::size_t size = 0;
  for (const KeyValue& each : keys) {
    size += each.key.size() + each.value.size();
  }
  return size;
}

void check_messages(std::string_view bytes)
{
  const char* const what = "a message has no more than its bytes";
  if (const auto txn = decode_txn(bytes)) {
    std::size_t size = 0;
    for (const RangeAnswer& each : txn->answers) {
      size += size_of(each.keys);
    }
    promise(size <= bytes.size() && txn->answers.size() <= bytes.size(), what);
  }
  if (const auto range = decode_range(bytes)) {
    promise(size_of(range->keys) <= bytes.size(), "a range has no more than its bytes");
  }
  if (const auto watch = decode_watch(bytes)) {
    promise(watch->cancel_reason.size() <= bytes.size() && watch->events.size() <= bytes.size(), what);
  }
  if (const auto status = decode_status(bytes)) {
    promise(status->version.size() <= bytes.size() && status->errors.size() <= bytes.size(), what);
  }
  if (const auto members = decode_members(bytes)) {
    promise(members->size() <= bytes.size(), what);
  }
  if (const auto token = decode_token(bytes)) {
    promise(token->size() <= bytes.size(), what);
  }
}

// Nothing but a renewal and a commit under one leader proves a lease.
void check_proof(std::string_view kept_bytes, std::string_view committed_bytes, std::int64_t create_revision)
{
  const auto kept = decode_lease(kept_bytes);
  const auto committed = decode_txn(committed_bytes);
  if (!kept || !committed) {
    return;
  }
  const auto proof = proof_of(*kept, *committed, create_revision, Instant{});
  const auto* const lease = proof ? std::get_if<LeaseTerm>(&*proof) : nullptr;
  if (lease == nullptr) {
    return;
  }
  promise(lease->from == Instant{} && lease->length > Millis{0}, "a lease counts from the request, and lasts");
  promise(kept->header.member == committed->header.member && kept->header.raft_term == committed->header.raft_term,
          "no lease is proven by two leaders");
  promise(committed->succeeded, "no lease is proven without its key");
}

void check_names(std::string_view text)
{
  const std::string prefix(text);
  const std::string end = end_of_prefix(prefix);
  promise(end.empty() || (prefix < end && prefix + "\xff\xff\xff" < end), "a range has all keys with its prefix");
  if (const auto lease = lease_in(prefix)) {
    promise(lease_in(name_of_lease(*lease)) == lease, "the id of a presence names its lease");
  }
}

}  // namespace

void fuzz_etcd(std::string_view bytes)
{
  Input input(bytes);
  const auto create_revision = static_cast<std::int64_t>(input.choice(4));
  const std::string_view kept = input.until('\x1e');
  check_messages(input.rest());
  check_proof(kept, input.rest(), create_revision);
  check_names(input.rest());
}

}  // namespace rlock::test
