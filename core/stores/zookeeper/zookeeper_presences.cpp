// SPDX-License-Identifier: Apache-2.0
#include "stores/zookeeper/zookeeper_presences.h"

#include <algorithm>
#include <utility>

namespace rlock::zookeeper {
namespace {

using record::Keeping;
using record::NoLonger;
using record::Presence;
using record::PresenceId;
using record::Proof;

// A presence in a session that was proven longer ago than this part of its timeout begins with a proof.
constexpr int fresh_part = 8;

LeaseTerm lease_of(const SessionTerm& term) { return {.from = term.from, .length = term.length}; }

// Of the proofs of a keeper, in a session.
constexpr int proofs_in_session = 3;
constexpr int tries_in_session = 12;

}  // namespace

LeaseTerm NodePresences::Own::lease() const
{
  const LeaseTerm own = lease_of(client->term());
  return {.from = own.from, .length = is_kept ? own.length : std::max(own.length, wanted)};
}

Operation NodePresences::creation(const PresenceId& id) const
{
  return create(m_layout.presence(id), {}, CreateMode::ephemeral, !m_client->spec().user.empty());
}

bool NodePresences::has_any_in(const Client& client) const
{
  return std::ranges::any_of(m_own, [&](const auto& each) { return each.second.client.get() == &client; });
}

// The session that sends the requests gets this lease, unless another presence or a listener uses that session.
std::shared_ptr<Client> NodePresences::client_for(Millis lease, Keeping keeping)
{
  if (keeping == Keeping::kept) {
    if (m_client->asked_for() != lease && !shares_session() && !m_shared.has_listeners()) {
      m_client->close_ahead();
      m_client->ask_for(lease);
    }
    if (m_client->asked_for() == lease) {
      return m_client;
    }
    const auto found = std::ranges::find_if(
        m_own, [&](const auto& each) { return each.second.is_kept && each.second.client->asked_for() == lease; });
    if (found != m_own.end()) {
      return found->second.client;
    }
  }
  return std::make_shared<Client>(m_client->spec(), lease, m_clock, std::make_unique<SystemRng>());
}

// Changes the node, or makes it where it is not known to be there: the answer to an earlier request that made it may be lost. nullopt:
// the session has ended.
Result<std::optional<Answer>> NodePresences::prove_node(const PresenceId& id, Own& own, const CallLimits& limit) const
{
  const Operation change = own.is_in_store ? set_data(m_layout.presence(id), {}, any_version) : creation(id);
  auto proven = own.client->prove(change, limit);
  if (!proven || !*proven || own.is_in_store || (*proven)->code != Code::node_exists) {
    return proven;
  }
  own.is_in_store = true;
  return prove_node(id, own, limit);
}

// Makes the node at once.
Result<Presence> NodePresences::put(const PresenceId& id, Own own, const CallLimits& limit)
{
  Client& client = *own.client;
  std::optional<Answer> answer;
  if (client.session_id() != 0) {
    ASSIGN_OR_RETURN(auto proven, prove_node(id, own, limit));
    answer = std::move(proven);
  }
  if (!answer) {  // a new session
    ASSIGN_OR_RETURN(auto made, client.ask(creation(id), limit));
    answer = std::move(made);
  }
  if (!answer->is_ok() && answer->code != Code::node_exists) {
    return error_of(answer->code, client.where());
  }
  own.is_in_store = true;
  own.session = client.session_number();
  const LeaseTerm lease = own.lease();
  if (!own.is_kept) {
    client.drop();
  }
  m_own.insert_or_assign(id, std::move(own));
  return Presence{.id = id, .lease = lease};
}

Result<Presence> NodePresences::make(Millis lease, Keeping keeping, const CallLimits& limit)
{
  SystemRng rng;
  const PresenceId id = random_uuid(rng);
  Own own{.client = client_for(lease, keeping), .session = 0, .is_kept = keeping == Keeping::kept, .wanted = lease};
  const SessionTerm& term = own.client->term();
  const bool is_fresh = own.client->session_id() != 0 && m_clock.now() - term.from < term.length / fresh_part;
  if (own.client != m_client || !is_fresh) {
    return put(id, std::move(own), limit);
  }
  own.session = m_client->session_number();
  m_own.insert_or_assign(id, std::move(own));
  return Presence{.id = id, .lease = lease_of(term)};
}

Result<Proof> NodePresences::prove(const PresenceId& id, const CallLimits& limit)
{
  const auto found = m_own.find(id);
  if (found == m_own.end()) {
    return Error{ErrorCode::internal, "there is no presence of this client to prove"};
  }
  Own& own = found->second;
  Client& client = *own.client;
  if (client.session_number() != own.session || client.session_id() == 0) {
    m_own.erase(found);
    return Proof{NoLonger{}};
  }
  const std::int64_t session = client.session_id();
  ASSIGN_OR_RETURN(const auto proven, prove_node(id, own, limit));
  if (!proven.has_value() || proven->code == Code::no_node ||
      (proven->is_ok() && proven->stat.ephemeral_owner != session)) {
    m_own.erase(found);
    return Proof{NoLonger{}};
  }
  if (!proven->is_ok()) {
    return error_of(proven->code, client.where());
  }
  own.is_in_store = true;
  const LeaseTerm lease = own.lease();
  if (!own.is_kept) {
    client.drop();
  }
  return Proof{lease};
}

Result<std::vector<PresenceId>> NodePresences::gone(std::span<const PresenceId> ids, const CallLimits& limit)
{
  if (!m_client->is_connected() || m_client->connection_number() != m_read_connection) {
    return Error{ErrorCode::unreachable, "lost the connection to " + m_client->spec().url + " after a read"};
  }
  std::vector<Operation> questions;
  for (const PresenceId& id : ids) {
    questions.push_back(exists(m_layout.presence(id), false));
  }
  ASSIGN_OR_RETURN(const auto answers, m_client->ask(questions, limit));
  std::vector<PresenceId> all;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (answers[i].code == Code::no_node) {
      all.push_back(ids[i]);
    }
  }
  return all;
}

// The session ends with its last presence, unless a listener needs it.
Result<Done> NodePresences::remove(const PresenceId& id, const CallLimits& limit)
{
  if (const auto found = m_own.find(id); found != m_own.end()) {
    const Own own = std::move(found->second);
    m_own.erase(found);
    const bool is_last = !has_any_in(*own.client) && (own.client != m_client || !m_shared.has_listeners());
    if (is_last && own.client->session_number() == own.session) {
      return own.client->close(limit);
    }
  }
  ASSIGN_OR_RETURN(const auto removed, m_client->ask(zookeeper::remove(m_layout.presence(id), any_version), limit));
  return removed.is_ok() || removed.code == Code::no_node ? Result(Done{})
                                                          : Result<Done>(error_of(removed.code, m_client->where()));
}

std::optional<Millis> NodePresences::lasts_without_keeper() const
{
  std::optional<Millis> lasts;
  for (const auto& [id, own] : m_own) {
    if (own.needs_keeper()) {
      lasts = std::max(lasts.value_or(Millis{0}), own.client->term().length);
    }
  }
  return lasts;
}

struct NodePresences::KeptLease {
  PresenceId id;
  std::shared_ptr<Client> client;
  Instant ends;
  Instant due;
  enum class State { kept, over, ended_early } state = State::kept;
};

// Renews the session, or ends it when its lease is over or the presence was removed.
void NodePresences::keep(KeptLease& each)
{
  using State = KeptLease::State;
  const SessionTerm& term = each.client->term();
  const Instant now = m_clock.now();
  const Instant again = now + term.length / tries_in_session;
  if (now >= each.ends) {  // an attempt that fails may have lengthened the session
    const bool is_closed = static_cast<bool>(each.client->close({now + term.length, StopToken::never()}));
    const bool is_over = is_closed || now >= each.ends + term.length;
    each.state = is_over ? State::over : State::kept;
    each.due = again;
    return;
  }
  const auto answer = each.client->prove(set_data(m_layout.presence(each.id), {}, any_version),
                                         {now + term.length / proofs_in_session, StopToken::never()});
  each.client->drop();
  if (!answer) {
    each.due = again;
  } else if (!*answer) {
    each.state = State::ended_early;
  } else if ((*answer)->code == Code::no_node) {  // released
    each.ends = now;
    each.due = now;
  } else {
    each.due = (*answer)->is_ok() ? now + term.length / proofs_in_session : again;
  }
  each.due = std::min(each.due, each.ends);
}

bool NodePresences::keep_leases()
{
  std::vector<KeptLease> all;
  for (const auto& [id, own] : m_own) {
    if (own.needs_keeper()) {
      const LeaseTerm lease = own.lease();
      all.push_back({.id = id,
                     .client = own.client,
                     .ends = lease.from + lease.length,
                     .due = m_clock.now() + own.client->term().length / proofs_in_session});
    }
  }
  bool all_lasted = true;
  while (!all.empty()) {
    KeptLease& next = *std::ranges::min_element(all, {}, &KeptLease::due);
    m_clock.sleep_until(next.due, StopToken::never());
    keep(next);
    all_lasted = all_lasted && next.state != KeptLease::State::ended_early;
    std::erase_if(all, [](const KeptLease& each) { return each.state != KeptLease::State::kept; });
  }
  return all_lasted;
}

Operation NodePresences::creation_or_check(const PresenceId& id) const
{
  const auto own = m_own.find(id);
  const bool is_new = own != m_own.end() && !own->second.is_in_store;
  return is_new ? creation(id) : check(m_layout.presence(id), any_version);
}

std::array<Operation, 2> NodePresences::absent(const PresenceId& id) const
{
  return {creation(id), zookeeper::remove(m_layout.presence(id), any_version)};
}

Result<Answer> NodePresences::ask_as(const PresenceId& id, const Operation& operation, const CallLimits& limit)
{
  const auto own = m_own.find(id);
  auto answer = (own == m_own.end() ? *m_client : *own->second.client).ask(operation, limit);
  if (own != m_own.end() && !own->second.is_kept) {
    own->second.client->drop();
  }
  return answer;
}

void NodePresences::note_made(const PresenceId& id)
{
  if (const auto own = m_own.find(id); own != m_own.end()) {
    own->second.is_in_store = true;
    own->second.is_needed = true;
  }
}

}  // namespace rlock::zookeeper
