// SPDX-License-Identifier: Apache-2.0
#include "stores/etcd/etcd_presences.h"

#include <algorithm>
#include <charconv>
#include <utility>
#include "base/duration.h"
#include "base/hex.h"

namespace rlock::etcd {
namespace {

using record::NoLonger;
using record::Presence;
using record::PresenceId;
using record::Proof;

constexpr std::size_t most_reads = 100;  // in one transaction; etcd permits 128 operations
constexpr int most_proofs = 3;  // tries of one prove(); each but the last met a new leader, or learned of the key

}  // namespace

std::optional<std::int64_t> lease_in(const PresenceId& id)
{
  std::int64_t lease = 0;
  const auto [end, error] = std::from_chars(id.data(), id.data() + id.size(), lease, 16);
  const bool is_lease = error == std::errc{} && end == id.data() + id.size() && lease > 0;
  return is_lease ? std::optional(lease) : std::nullopt;
}

std::int64_t draw_lease(Rng& rng) { return static_cast<std::int64_t>(rng.next() >> 1U) | 1; }

std::string name_of_lease(std::int64_t lease) { return hex_of(static_cast<std::uint64_t>(lease)); }

std::int64_t seconds_of(Millis lease)
{
  return std::max<std::int64_t>(std::chrono::ceil<std::chrono::seconds>(lease).count(), 1);
}

// A grant is a commit of a majority: a later leader gives the lease its whole time again.
Result<Presence> EtcdPresences::make(Millis lease, record::Keeping, const CallLimits& limit)
{
  const std::int64_t seconds = seconds_of(lease);
  if (seconds > longest_lease) {
    return Error{ErrorCode::config, m_connection.spec().url + " has no leases of more than " +
                                        std::to_string(longest_lease) + " s (give a shorter --ttl)"};
  }
  const std::int64_t number = draw_lease(m_rng);
  const Instant sent_at = m_clock.now();
  ASSIGN_OR_RETURN(const auto granted, m_connection.grant(number, seconds, limit));
  m_longest = std::max(m_longest, lease);
  PresenceId id = name_of_lease(number);
  m_own[id] = Own{.lease = number};
  return Presence{.id = std::move(id), .lease = {.from = sent_at, .length = std::chrono::seconds(granted.ttl)}};
}

Txn commit_of_proof(const std::string& key, std::int64_t create_revision)
{
  Txn txn;
  txn.compare.push_back(
      {.target = Compare::Target::create, .result = Compare::Result::equal, .key = key, .revision = create_revision});
  txn.success.emplace_back(Delete{.key = key + '\0'});  // no client puts such a key
  txn.failure.emplace_back(Range{.key = key, .keys_only = true});
  return txn;
}

std::optional<Proof> proof_of(const LeaseAnswer& kept, const TxnAnswer& committed, std::int64_t create_revision,
                              Instant sent_at)
{
  if (!committed.succeeded) {
    return create_revision != 0 ? std::optional(Proof(NoLonger{})) : std::nullopt;
  }
  const bool is_one_leader =
      kept.header.member == committed.header.member && kept.header.raft_term == committed.header.raft_term;
  if (create_revision == 0 && kept.ttl <= 0 && is_one_leader) {
    return Proof(NoLonger{});  // no commit can put the key any more, so nothing depends on this lease
  }
  if (kept.ttl <= 0 || !is_one_leader) {
    return std::nullopt;
  }
  return Proof(LeaseTerm{.from = sent_at, .length = std::chrono::seconds(kept.ttl)});
}

// nullopt: not proven.
Result<std::optional<Proof>> EtcdPresences::try_to_prove(const PresenceId& id, Own& own, const CallLimits& limit)
{
  const Instant sent_at = m_clock.now();
  ASSIGN_OR_RETURN(const auto kept, m_connection.keep_alive(own.lease, limit));
  const auto connection = m_connection.generation();
  ASSIGN_OR_RETURN(const auto committed,
                   m_connection.txn(commit_of_proof(m_layout.key(Kind::presence, id), own.create_revision), limit));
  if (connection != m_connection.generation()) {
    return std::optional<Proof>();
  }
  const auto proof = proof_of(kept, committed, own.create_revision, sent_at);
  if (own.create_revision == 0 && !committed.answers.empty() && !committed.answers.front().keys.empty()) {
    own.create_revision = committed.answers.front().keys.front().create_revision;  // the answer to its Put was lost
  }
  return proof;
}

Result<Proof> EtcdPresences::prove(const PresenceId& id, const CallLimits& limit)
{
  const auto own = m_own.find(id);
  if (own == m_own.end()) {
    return Error{ErrorCode::internal, "this process did not make the presence " + id};
  }
  for (int tries = 0; tries < most_proofs; ++tries) {
    ASSIGN_OR_RETURN(const auto proof, try_to_prove(id, own->second, limit));
    if (proof) {
      return *proof;
    }
  }
  return Error{.code = ErrorCode::unreachable,
               .text = m_connection.where() + " renewed the lease, but could not prove it (is there a new leader?)",
               .was_there = true};
}

Result<Done> EtcdPresences::find_out(const PresenceId& id, Own& own, const CallLimits& limit)
{
  if (own.create_revision != 0 || !own.is_sent) {
    return Done{};
  }
  ASSIGN_OR_RETURN(const auto read, m_connection.range({.key = m_layout.key(Kind::presence, id)}, limit));
  own.create_revision = read.keys.empty() ? 0 : read.keys.front().create_revision;
  return Done{};
}

Result<std::vector<PresenceId>> EtcdPresences::gone(std::span<const PresenceId> ids, const CallLimits& limit)
{
  std::vector<PresenceId> all;
  while (!ids.empty()) {
    const auto part = ids.first(std::min(ids.size(), most_reads));
    ids = ids.subspan(part.size());
    Txn txn;
    for (const PresenceId& id : part) {
      txn.success.emplace_back(Range{.key = m_layout.key(Kind::presence, id), .keys_only = true});
    }
    ASSIGN_OR_RETURN(const auto answer, m_connection.txn(txn, limit));
    if (answer.header.revision < m_read_at) {
      return Error{ErrorCode::unreachable, m_connection.where() + " answered with an old state"};
    }
    for (std::size_t i = 0; i < part.size() && i < answer.answers.size(); ++i) {
      if (answer.answers[i].keys.empty()) {
        all.push_back(part[i]);
      }
    }
  }
  return all;
}

Result<Done> EtcdPresences::remove(const PresenceId& id, const CallLimits& limit)
{
  const auto lease = lease_in(id);
  if (!lease) {
    return Done{};
  }
  if (m_own.size() == 1 && m_own.contains(id)) {
    m_shared.suspend();
  }
  const auto done = m_connection.revoke(*lease, limit);
  if (done) {
    m_own.erase(id);
  }
  return done;
}

Result<Done> EtcdPresences::need(std::span<const PresenceId> ids, Txn& txn, const CallLimits& limit)
{
  for (const PresenceId& id : ids) {
    const auto own = m_own.find(id);
    if (own != m_own.end()) {
      RETURN_IF_ERROR(find_out(id, own->second, limit));
    }
    std::string key = m_layout.key(Kind::presence, id);
    if (own == m_own.end() || own->second.create_revision != 0) {
      const std::int64_t revision = own == m_own.end() ? 0 : own->second.create_revision;
      txn.compare.push_back({.target = Compare::Target::create,
                             .result = revision == 0 ? Compare::Result::greater : Compare::Result::equal,
                             .key = std::move(key),
                             .revision = revision});
      continue;
    }
    txn.compare.push_back({Compare::Target::create, Compare::Result::equal, key});
    txn.success.emplace_back(Put{.key = std::move(key), .value = {}, .lease = own->second.lease});
    own->second.is_sent = true;
  }
  return Done{};
}

void EtcdPresences::committed(std::span<const PresenceId> ids, std::int64_t revision)
{
  for (const PresenceId& id : ids) {
    const auto own = m_own.find(id);
    if (own != m_own.end() && own->second.create_revision == 0) {
      own->second.create_revision = revision;
    }
  }
}

Result<bool> EtcdPresences::has_lost_lease(std::span<const PresenceId> ids, const CallLimits& limit)
{
  for (const PresenceId& id : ids) {
    const auto own = m_own.find(id);
    if (own == m_own.end()) {
      continue;
    }
    ASSIGN_OR_RETURN(const auto left, m_connection.time_to_live(own->second.lease, limit));
    if (left.ttl <= 0) {
      return true;
    }
  }
  return false;
}

}  // namespace rlock::etcd
