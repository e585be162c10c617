// SPDX-License-Identifier: Apache-2.0
#include "stores/etcd/etcd_backend.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <utility>
#include <vector>
#include "base/text.h"
#include "engine/name_glob.h"
#include "engine/recorded_log.h"
#include "stores/etcd/etcd_checks.h"
#include "stores/etcd/etcd_listener.h"
#include "stores/etcd/etcd_native_line.h"
#include "stores/etcd/etcd_presences.h"

namespace rlock::etcd {
namespace {

using record::Backend;
using record::Change;
using record::Commit;
using record::Committed;
using record::Conflict;
using record::PresenceGone;
using record::Snapshot;
using record::Version;

constexpr std::int64_t keys_per_page = 5000;

// "MODIFICATION READ"
struct Revisions {
  std::int64_t modification = 0;  // 0: there is no record
  std::int64_t read = 0;
};

Version version_of(const Revisions& revisions)
{
  return std::to_string(revisions.modification) + " " + std::to_string(revisions.read);
}

Revisions revisions_in(std::string_view version)
{
  Revisions revisions;
  const char* const end = version.data() + version.size();
  const auto first = std::from_chars(version.data(), end, revisions.modification);
  if (first.ptr != end) {
    std::from_chars(first.ptr + 1, end, revisions.read);
  }
  return revisions;
}

class EtcdBackend final : public Backend {
 public:
  EtcdBackend(ConnectionSpec spec, const Clock& clock, std::unique_ptr<Rng> rng)
      : m_clock(clock),
        m_shared(std::make_shared<Listeners>(std::move(spec), clock, std::move(rng))),
        m_presences(*m_shared, clock),
        m_line(*m_shared)
  {
  }

  Result<Snapshot> read(std::string_view name, const CallLimits& limit) override
  {
    RETURN_IF_ERROR(beat(limit));
    Txn txn;
    ask_state(txn, name);
    const bool sees_line = may_read_all();
    if (sees_line) {
      txn.success.emplace_back(EtcdNativeLine::first_of(name));
    }
    ASSIGN_OR_RETURN(const auto answer, connection().txn(txn, limit));
    if (answer.answers.size() != txn.success.size()) {
      return Error{ErrorCode::internal, connection().where() + " answered nonsense (is it etcd?)"};
    }
    m_presences.record_was_read_at(answer.header.revision);
    m_seen = Seen{.name = std::string(name), .leases = {}};
    Snapshot state = state_in(answer, 0, m_seen);
    state.has_line = !sees_line || !answer.answers.back().keys.empty();
    return state;
  }

  Result<record::StatesAndLogs> read_each(std::span<const std::string_view> names, bool with_logs,
                                          const CallLimits& limit) override
  {
    RETURN_IF_ERROR(beat(limit));
    const std::size_t answers_of_lock = answers_of_state + (with_logs ? 1 : 0);
    record::StatesAndLogs states;
    while (!names.empty()) {
      const auto some = names.first(std::min(names.size(), most_operations / answers_of_lock));
      names = names.subspan(some.size());
      Txn txn;
      for (const std::string_view name : some) {
        ask_state(txn, name);
        if (with_logs) {
          txn.success.emplace_back(layout().all(Kind::event, name));
        }
      }
      ASSIGN_OR_RETURN(const auto answer, connection().txn(txn, limit));
      m_presences.record_was_read_at(answer.header.revision);
      for (std::size_t i = 0; i < some.size() && (i + 1) * answers_of_lock <= answer.answers.size(); ++i) {
        const std::size_t at = i * answers_of_lock;
        Seen listeners;
        auto& known = states[std::string(some[i])];
        known.state = state_in(answer, at, listeners);
        if (with_logs) {
          known.log = entries_in(answer.answers[at + answers_of_state]);
        }
      }
    }
    return states;
  }

  Result<Commit> write_if(std::string_view name, const Version& version, const Change& change,
                          const CallLimits& limit) override
  {
    RETURN_IF_ERROR(beat(limit));
    const Revisions revisions = revisions_in(version);
    Txn txn;
    compare_version(txn, name, revisions);
    put_record(txn, name, change);
    change_log(txn, name, change.log);
    RETURN_IF_ERROR(m_presences.need(change.needed, txn, limit));
    if (change.line != nullptr) {
      EtcdNativeLine::change(name, *change.line, txn);
    }
    const std::size_t told = put_messages(txn, name, change.messages);
    const auto answer = connection().txn(txn, limit);
    if (!answer) {
      if (connection().is_too_large()) {
        Error why = answer.error();
        why.text += ": a request of " + std::to_string(encode(txn).size()) + " bytes";
        return Commit{record::TooLarge{std::move(why)}};
      }
      return connection().is_lease_gone() ? lease_gone(change, limit) : answer.error();
    }
    if (!answer->succeeded) {
      return Commit{Conflict{}};
    }
    m_presences.committed(change.needed, answer->header.revision);
    if (!tell_rest(name, change.messages.subspan(told), limit)) {
      connection().drop();  // the change has happened; a waiter without its message reads the record later
    }
    return Commit{Committed{.version = version_of({answer->header.revision, answer->header.revision}),
                            .order = answer->header.revision}};
  }

  Result<std::unique_ptr<MessageSource>> listen(std::span<const LockChannel> channels, const CallLimits& limit) override
  {
    m_shared->last_at_least(m_presences.longest());
    return m_shared->open(channels, limit);
  }

  Result<std::vector<std::string>> events(std::string_view name, const CallLimits& limit) override
  {
    ASSIGN_OR_RETURN(const auto answer, connection().range(layout().all(Kind::event, name), limit));
    return entries_in(answer);
  }

  Result<std::vector<std::string>> list(std::string_view glob, Which which, const CallLimits& limit) override
  {
    Range page = layout().all(which == Which::held ? Kind::held : Kind::event);
    const std::size_t begin = page.key.size();
    page.keys_only = true;
    page.limit = keys_per_page;
    std::vector<std::string> names;
    for (bool has_more = true; has_more;) {
      ASSIGN_OR_RETURN(const auto answer, connection().range(page, limit));
      for (const KeyValue& each : answer.keys) {
        const std::string name = each.key.substr(begin, each.key.find('\0') - begin);
        if (names.empty() || names.back() != name) {
          names.push_back(name);
        }
      }
      has_more = answer.has_more && !answer.keys.empty();
      page.key = has_more ? answer.keys.back().key + '\0' : page.key;
    }
    record::keep_matching(names, glob);
    return names;
  }

  Result<Done> erase(std::string_view name, const CallLimits& limit) override
  {
    Txn txn;
    txn.success.emplace_back(Delete{.key = layout().key(Kind::lock, name)});
    txn.success.emplace_back(Delete{.key = layout().key(Kind::held, name)});
    const Range events = layout().all(Kind::event, name);
    txn.success.emplace_back(Delete{.key = events.key, .range_end = events.range_end});
    RETURN_IF_ERROR(connection().txn(txn, limit));
    return Done{};
  }

  Result<std::vector<Finding>> check_server(const CallLimits& limit) override
  {
    return etcd::check_server(connection().spec(), m_clock, limit);
  }
  record::Presences* presences() override { return &m_presences; }
  std::vector<record::NativeLine*> native_lines() override { return {&m_line}; }
  void drop_connection() override { connection().drop(); }
  [[nodiscard]] std::size_t members() const override { return m_shared->connection().spec().members.size(); }

 private:
  // What the last read saw beside its record.
  struct Seen {
    std::string name;
    std::map<std::string, std::int64_t> leases;  // of a listener of each channel
  };

  static constexpr std::size_t answers_of_state = 2;
  void ask_state(Txn& txn, std::string_view name) const
  {
    txn.success.emplace_back(Range{.key = layout().key(Kind::lock, name)});
    txn.success.emplace_back(layout().all(Kind::listener, name));
  }
  // From the answer number `at` on.
  [[nodiscard]] Snapshot state_in(const TxnAnswer& answer, std::size_t at, Seen& seen) const
  {
    Snapshot state{.version = {}, .bytes = {}, .time_at = m_clock.now(), .listeners = {}};
    state.time_us = wall_clock_ms() * 1000;
    Revisions revisions{.modification = 0, .read = answer.header.revision};
    for (const KeyValue& record : answer.answers[at].keys) {
      revisions.modification = record.mod_revision;
      state.bytes = record.value;
    }
    state.version = version_of(revisions);
    for (const KeyValue& key : answer.answers[at + 1].keys) {
      Listener listener = listener_in(key);
      for (std::string& channel : listener.channels) {
        seen.leases[channel] = listener.lease;
        state.listeners.push_back(std::move(channel));
      }
    }
    std::ranges::sort(state.listeners);
    return state;
  }
  static std::vector<std::string> entries_in(const RangeAnswer& answer)
  {
    std::vector<std::string> entries;
    for (const KeyValue& each : answer.keys) {
      record::set_fence_of_commit(entries.emplace_back(each.value), each.mod_revision);
    }
    return entries;
  }

  Connection& connection() { return m_shared->connection(); }
  [[nodiscard]] const Layout& layout() const { return m_shared->layout(); }
  Result<Done> beat(const CallLimits& limit) { return m_shared->beat(limit); }

  // Whether it is certain that no key outside of the prefix is forbidden, which would end the transaction.
  [[nodiscard]] bool may_read_all()
  {
    const ConnectionSpec& spec = connection().spec();
    return spec.user.empty() && !spec.uses_tls();
  }

  // The record is the same, and no client has begun to listen since.
  void compare_version(Txn& txn, std::string_view name, const Revisions& revisions) const
  {
    txn.compare.push_back({Compare::Target::modification, Compare::Result::equal, layout().key(Kind::lock, name),
                           revisions.modification});
    const Range listeners = layout().all(Kind::listener, name);
    txn.compare.push_back({.target = Compare::Target::modification,
                           .result = Compare::Result::less,
                           .key = listeners.key,
                           .revision = revisions.read + 1,
                           .range_end = listeners.range_end});
  }

  void put_record(Txn& txn, std::string_view name, const Change& change) const
  {
    txn.success.emplace_back(Put{.key = layout().key(Kind::lock, name), .value = std::string(change.bytes)});
    std::string held = layout().key(Kind::held, name);
    if (change.face.holder.empty()) {
      txn.success.emplace_back(Delete{.key = std::move(held)});
    } else {
      txn.success.emplace_back(Put{.key = std::move(held), .value = change.face.holder});
    }
  }

  // No key may be both put and deleted.
  void change_log(Txn& txn, std::string_view name, const record::LogChange& log) const
  {
    for (const record::LoggedEvent& each : log.written) {
      const bool is_kept = each.id >= log.first_kept.value_or(each.id) && each.id <= log.last_kept.value_or(each.id);
      if (is_kept) {
        txn.success.emplace_back(Put{.key = layout().event(name, each.id), .value = each.entry});
      }
    }
    if (log.first_kept && *log.first_kept > 0) {
      txn.success.emplace_back(Delete{layout().event(name, 0), layout().event(name, *log.first_kept)});
    }
    if (log.last_kept) {
      txn.success.emplace_back(
          Delete{layout().event(name, *log.last_kept + 1), layout().all(Kind::event, name).range_end});
    }
  }

  // As many as one transaction takes; returns their number.
  std::size_t put_messages(Txn& txn, std::string_view name, std::span<const Message> messages) const
  {
    std::size_t number = 0;
    for (const Message& each : messages) {
      if (txn.success.size() == most_operations) {
        break;
      }
      const auto lease = m_seen.leases.find(each.channel);
      if (m_seen.name == name && lease != m_seen.leases.end()) {
        txn.success.emplace_back(Put{.key = layout().key(Kind::message, each.channel, std::to_string(number)),
                                     .value = each.text,
                                     .lease = lease->second});
      }
      ++number;
    }
    return number;
  }

  Result<Done> tell_rest(std::string_view name, std::span<const Message> messages, const CallLimits& limit)
  {
    while (!messages.empty()) {
      Txn txn;
      messages = messages.subspan(put_messages(txn, name, messages));
      const auto told = connection().txn(txn, limit);
      if (!told && !connection().is_lease_gone()) {
        return told.error();
      }
    }
    return Done{};
  }

  // The transaction did not happen. The lease was that of a listener, or of an own presence.
  Result<Commit> lease_gone(const Change& change, const CallLimits& limit)
  {
    ASSIGN_OR_RETURN(const auto lost, m_presences.has_lost_lease(change.needed, limit));
    return lost ? Commit{PresenceGone{}} : Commit{Conflict{}};
  }

  const Clock& m_clock;
  std::shared_ptr<Listeners> m_shared;
  EtcdPresences m_presences;
  EtcdNativeLine m_line;
  Seen m_seen;
};

}  // namespace

std::unique_ptr<Backend> open_backend(ConnectionSpec spec, const Clock& clock, std::unique_ptr<Rng> rng)
{
  return std::make_unique<EtcdBackend>(std::move(spec), clock, std::move(rng));
}

namespace {

std::string grant_line(const std::string& role, std::string_view prefix)
{
  return "etcdctl role grant-permission " + role + " readwrite --prefix=true " + shell_quoted(prefix) + "\n";
}

// The keys of the native line of a lock, or of the locks whose names begin so; nullopt: a prefix of etcd cannot say that.
std::optional<std::string> native_prefix(std::string_view glob)
{
  const bool is_beginning = glob.ends_with('*');
  std::string begin(glob.substr(0, glob.size() - (is_beginning ? 1 : 0)));
  if (begin.find_first_of("*?[\\") != std::string::npos || begin.empty()) {
    return std::nullopt;
  }
  return is_beginning ? begin : begin + "/";
}

// Named after what it permits, because users with other keys must not share it.
std::string role_for(const ConnectionSpec& spec, std::span<const std::string> globs)
{
  std::string role = spec.prefix == default_prefix ? "rlock" : "rlock:" + spec.prefix;
  for (const std::string& glob : globs) {
    role += ":" + glob;
  }
  return role == "rlock" ? role : shell_quoted(role);
}

}  // namespace

Result<std::string> rights_lines(const ConnectionSpec& spec, std::string_view user, std::span<const std::string> globs)
{
  const std::string role = role_for(spec, globs);
  const std::string quoted_user = shell_quoted(user);
  std::string lines = "etcdctl role add " + role + "\n" + grant_line(role, Layout(spec.prefix).all().key);
  for (const std::string& glob : globs) {
    const auto prefix = native_prefix(glob);
    if (!prefix) {
      return Error{ErrorCode::usage,
                   "'" + printable(glob) + "': a role of etcd is for a lock, or for a beginning (try -k 'app:*')"};
    }
    lines += grant_line(role, *prefix);
  }
  return lines + "etcdctl user add " + quoted_user +
         (spec.uses_tls() ? "  # --no-password for a user who logs in by the common name of a certificate" : "") +
         "\netcdctl user grant-role " + quoted_user + " " + role + "\n";
}

}  // namespace rlock::etcd
