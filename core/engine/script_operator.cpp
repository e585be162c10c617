// SPDX-License-Identifier: Apache-2.0
// What operators ask of ScriptStore: inspect, list, forget, force-unlock.
#include <algorithm>
#include <array>
#include <numeric>
#include "engine/lock_keys.h"
#include "engine/script_call.h"
#include "engine/script_reply.h"
#include "engine/script_store.h"
#include "lock/kept_runs.h"
#include "lua/scripts.h"

namespace rlock {
namespace {

std::vector<Holder> holders_in(const answers::Known& known)
{
  std::vector<Holder> holders;
  for (const answers::HolderRow& row : known.holders) {
    holders.push_back(holder_of(row));
    holders.back().age = row.age;
    holders.back().revoked = row.revoked;
  }
  return holders;
}

// Leaves out the dead waiters. One that does not listen is not dead where it may have closed its connection.
std::vector<Waiter> waiters_in(const answers::Known& known, bool spares_connections)
{
  std::vector<Waiter> waiting;
  for (std::size_t place = 0; place < known.waiters.size(); ++place) {
    const answers::WaiterRow& row = known.waiters[place];
    if (row.is_connected || (spares_connections && place >= listening_waiters)) {
      waiting.push_back({.owner = Owner::of(row.owner),
                         .info = info_of(row.info),
                         .is_connected = row.is_connected,
                         .passed = row.passed});
    }
  }
  return waiting;
}

NativeFormat format_in(const answers::Known& known)
{
  const auto* const format = std::ranges::find(native_formats, known.format.value_or(""));
  return format == native_formats.end() ? NativeFormat::none
                                        : static_cast<NativeFormat>(format - native_formats.begin());
}

// The mode of the request, refined by what the holders show.
LockKind mode_of(const LockKind& asked, const answers::Known& known)
{
  if (std::holds_alternative<Permits>(asked)) {
    return Permits{static_cast<unsigned>(std::max<std::int64_t>(known.limit, 0))};
  }
  const bool reads = !known.holders.empty() && known.holders.front().mode == reader_mode;
  return reads ? LockKind(Reader{}) : asked;
}

std::int64_t now_ms(const answers::Known& known)
{
  return plausible_ms(static_cast<std::int64_t>(known.now.value_or(0) / 1000));
}

std::optional<OnceSuccess> once_in(const answers::Known& known)
{
  if (!known.succeeded) {
    return std::nullopt;
  }
  const auto at = static_cast<std::int64_t>(*known.succeeded) / 1000;
  const Millis ago{
      plausible_ms(std::max<std::int64_t>(0, static_cast<std::int64_t>(known.now.value_or(0)) / 1000 - at))};
  return OnceSuccess{.at_ms = at, .remembered_for = ago + known.remembered, .ago = ago};
}

LockState state_of(const LockName& name, const LockKind& asked, const answers::Known& known, bool spares_connections)
{
  return {.name = name,
          .kind = mode_of(asked, known),
          .ttl = known.ttl,
          .fence = known.fence,
          .holders = holders_in(known),
          .waiting = waiters_in(known, spares_connections),
          .count = static_cast<std::uint64_t>(known.count),
          .agreed = known.agreed,
          .once = once_in(known),
          .proven = known.proven,
          .beside = format_in(known)};
}

// nullopt: another answer, or one without the time of the server.
std::optional<answers::Known> known_in(const Reply& reply)
{
  auto known = answer_in<answers::Known>(reply);
  return known && known->now ? std::move(known) : std::nullopt;
}

// The kind of the lock, by an answer that its key is of another one; nullptr: rlock knows none.
const KindDescriptor* other_kind_in(const Reply& reply)
{
  const auto other = answer_in<answers::Other>(reply);
  return other ? kind_in_key(other->content) : nullptr;
}

// A list of holders that is not complete tells nothing about an owner that is not in it.
std::vector<PastRun> past_runs_in(const answers::Known& known)
{
  std::vector<EventLogEntry> entries;
  for (const std::string& entry : known.log) {
    entries.push_back(EventLogEntry::of(entry));
  }
  const auto holders = holders_in(known);
  const bool is_complete = static_cast<std::size_t>(std::max<std::int64_t>(known.count, 0)) <= holders.size();
  const auto waiting = known.format ? waiters_in(known, true) : std::vector<Waiter>();
  const auto is_holder = [&](const Owner& owner) {
    // A holder by the record that stands behind a native client is shown as a waiter.
    return !is_complete || std::ranges::any_of(waiting, [&](const Waiter& waiter) { return waiter.owner == owner; }) ||
           std::ranges::any_of(holders, [&](const Holder& holder) { return holder.owner == owner; });
  };
  return past_runs(entries, is_holder, now_ms(known));
}

LockHistory history_in(const answers::Known& known)
{
  LockHistory history{.runs = past_runs_in(known)};
  if (known.log.size() >= static_cast<std::size_t>(event_count) && !history.runs.empty()) {
    history.complete_since_ms = history.runs.back().start_ms;
  }
  return history;
}

// Only a run with a long --history writes the list. A log that is not full, and has no such run, has all runs.
bool may_have_kept_runs(const LockHistory& history)
{
  return history.runs.empty() || history.complete_since_ms > 0 ||
         std::ranges::any_of(history.runs,
                             [](const PastRun& run) { return run.info && must_keep_runs(run.info->history); });
}

// Leaves out what is no name of a lock.
std::vector<LockName> names_in(const std::vector<std::string>& keys)
{
  std::vector<LockName> names;
  for (const std::string& key : keys) {
    if (auto name = LockName::parse(key)) {
      names.push_back(*std::move(name));
    }
  }
  return names;
}

std::vector<std::string> texts_of(const Reply& array)
{
  std::vector<std::string> texts;
  texts.reserve(array.elements.size());
  for (const Reply& each : array.elements) {
    texts.push_back(each.text);
  }
  return texts;
}

// Of the scripts of one round trip, which a server executes in a row.
constexpr std::size_t batch = 32;

VerbRequest inspection(const LockName& name, const LockKind& kind, const calls::Tail<std::string>& log_from)
{
  return {.lock = name, .kind = kind, .owner = Owner::of(""), .verb = calls::Inspect{.log_from = log_from}};
}

template <typename Call>
ScriptCall on_runs(const LockName& name, const Call& call)
{
  return {.script = scripts::runs, .keys = {LockKeys(name).runs}, .args = words_of(call)};
}

// The lock is of no kind that rlock knows, or has a name that it cannot have.
bool is_about_one_key(const Error& error) { return error.code == ErrorCode::config || error.code == ErrorCode::usage; }

}  // namespace

// Inspects a lock of unknown kind. Only the key tells the kind: the first request is for a plain lock, and the second request is
// for the kind that the answer names.
Result<ScriptStore::Inspected> ScriptStore::ask(const LockName& name, const LogFrom& log_from, const CallLimits& limit)
{
  LockKind kind = Plain{};
  for (bool first = true;; first = false) {
    const VerbRequest request = inspection(name, kind, log_from);
    ASSIGN_OR_RETURN(const auto reply, m_host->run(request, limit));
    if (auto known = known_in(reply)) {
      return Inspected{kind, *std::move(known)};
    }
    const KindDescriptor* const other = other_kind_in(reply);
    if (!first || other == nullptr) {
      return unexpected(request, reply);
    }
    kind = other->inspect_as;
  }
}

// In one round trip, and in another one for the locks of another kind than the plain one.
std::vector<Result<ScriptStore::Inspected>> ScriptStore::ask_batch(std::span<const LockName> names,
                                                                   const LogFrom& log_from, const PerAnswer& limits)
{
  std::vector<Result<Inspected>> answers(names.size(), Error{ErrorCode::internal, {}});
  std::vector<LockKind> kinds(names.size(), Plain{});
  std::vector<std::size_t> open(names.size());
  std::iota(open.begin(), open.end(), std::size_t{0});
  for (bool first = true; !open.empty(); first = false) {
    std::vector<ScriptRequest> requests;
    requests.reserve(open.size());
    for (const std::size_t i : open) {
      requests.emplace_back(inspection(names[i], kinds[i], log_from));
    }
    const auto replies = m_host->run_each(requests, limits.next());
    std::vector<std::size_t> of_other_kind;
    for (std::size_t at = 0; at < open.size(); ++at) {
      const std::size_t i = open[at];
      if (!replies[at]) {
        answers[i] = replies[at].error();
      } else if (auto known = known_in(*replies[at])) {
        answers[i] = Inspected{kinds[i], *std::move(known)};
      } else {
        const KindDescriptor* const other = other_kind_in(*replies[at]);
        if (first && other != nullptr) {
          kinds[i] = other->inspect_as;
          of_other_kind.push_back(i);
        } else {
          answers[i] = unexpected(std::get<VerbRequest>(requests[at]), *replies[at]);
        }
      }
    }
    open = std::move(of_other_kind);
  }
  return answers;
}

Result<Done> ScriptStore::ask_each(std::span<const LockName> names, const LogFrom& log_from, const PerAnswer& limits,
                                   const TakeAnswer& take)
{
  while (!names.empty()) {
    const auto some = names.first(std::min(batch, names.size()));
    names = names.subspan(some.size());
    const auto answers = ask_batch(some, log_from, limits);
    for (std::size_t i = 0; i < some.size(); ++i) {
      RETURN_IF_ERROR(take(some[i], answers[i]));
    }
  }
  return Done{};
}

Result<Done> ScriptHost::erase(const LockName& lock, const CallLimits& limit)
{
  const LockKeys keys(lock);
  const std::array<std::string_view, 9> argv{"DEL",       keys.lock,  keys.fence,   keys.holder,  keys.force,
                                             keys.events, keys.queue, keys.waiters, keys.reserved};
  const auto reply = command(lock, argv, limit);
  return reply ? Result(Done{}) : Result<Done>(reply.error());
}

Result<LockState> ScriptStore::inspect(const LockName& name, const CallLimits& limit)
{
  ASSIGN_OR_RETURN(const auto answer, ask(name, {}, limit));
  return state_in(name, answer);
}

LockState ScriptStore::state_in(const LockName& name, const Inspected& answer) const
{
  LockState state = state_of(name, answer.kind, answer.known, traits().spares_connections);
  state.is_of_shedlock = !state.proven && traits().has_only_locks;
  return state;
}

// A hash is a lock by its fields. A string may be any data, so only strings with a holder record beside them are listed.
Result<std::vector<LockState>> ScriptStore::list(std::string_view pattern, const PerAnswer& limits)
{
  ASSIGN_OR_RETURN(const auto keys, m_host->find_locks(pattern, limits));
  return list_held(names_in(keys), limits);
}

Result<std::vector<LockName>> ScriptStore::find_known(std::string_view pattern, const PerAnswer& limits)
{
  const auto held = list(pattern, limits);
  ASSIGN_OR_RETURN(const auto remembered, held ? m_host->find_remembered(pattern, limits) : held.error());
  std::vector<LockName> known = names_in(remembered);
  for (const LockState& state : *held) {
    known.push_back(state.name);
  }
  std::ranges::sort(known);
  known.erase(std::unique(known.begin(), known.end()), known.end());
  return known;
}

Result<std::vector<LockState>> ScriptStore::list_held(std::span<const LockName> names, const PerAnswer& limits)
{
  std::vector<LockState> locks;
  const auto take = [&](const LockName& name, const Result<Inspected>& answer) -> Result<Done> {
    if (!answer) {
      return is_about_one_key(answer.error()) ? Result(Done{}) : answer.error();
    }
    LockState state = state_in(name, *answer);
    if (state.held() && (state.proven || traits().has_only_locks)) {
      locks.push_back(std::move(state));
    }
    return Done{};
  };
  const auto asked = ask_each(names, {}, limits, take);
  return asked ? Result(std::move(locks)) : asked.error();
}

Result<std::vector<LockState>> ScriptStore::states_of(std::span<const LockName> names, const PerAnswer& limits)
{
  std::vector<LockState> locks;
  const auto take = [&](const LockName& name, const Result<Inspected>& answer) -> Result<Done> {
    if (answer) {
      locks.push_back(state_in(name, *answer));
    }
    return answer || answer.error().code == ErrorCode::config ? Result(Done{}) : answer.error();
  };
  const auto asked = ask_each(names, {}, limits, take);
  return asked ? Result(std::move(locks)) : asked.error();
}

// Another program may have put something else under the key, and a user may have no right to it: then the event log is all.
Result<std::vector<LockHistory>> ScriptStore::past_runs(std::span<const LockName> names, LogPart part,
                                                        const PerAnswer& limits)
{
  const bool is_all = part == LogPart::all;
  std::vector<LockHistory> histories;
  std::vector<bool> may_be_kept;
  const auto take = [&](const LockName&, const Result<Inspected>& answer) -> Result<Done> {
    if (!answer && (names.size() == 1 || !is_about_one_key(answer.error()))) {
      return answer.error();
    }
    histories.push_back(answer ? history_in(answer->known) : LockHistory());
    may_be_kept.push_back(answer && is_all && may_have_kept_runs(histories.back()));
    return Done{};
  };
  const auto asked = ask_each(names, is_all ? "0" : "-32", limits, take);
  const auto added = asked ? add_kept_runs(names, may_be_kept, histories, limits) : asked;
  return added ? Result(std::move(histories)) : added.error();
}

Result<Done> ScriptStore::add_kept_runs(std::span<const LockName> names, const std::vector<bool>& may_be_kept,
                                        std::vector<LockHistory>& histories, const PerAnswer& limits)
{
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < names.size() && traits().can_keep_runs; ++i) {
    if (may_be_kept[i]) {
      places.push_back(i);
    }
  }
  for (auto some = std::span<const std::size_t>(places); !some.empty();
       some = some.subspan(std::min(batch, some.size()))) {
    const auto now = some.first(std::min(batch, some.size()));
    std::vector<ScriptRequest> requests;
    for (const std::size_t place : now) {
      requests.emplace_back(on_runs(names[place], calls::ReadRuns{.from = 0}));
    }
    const auto replies = m_host->run_each(requests, limits.next());
    for (std::size_t i = 0; i < now.size(); ++i) {
      if (!replies[i] && is_passing(replies[i].error().code)) {
        return replies[i].error();
      }
      if (replies[i]) {
        LockHistory& history = histories[now[i]];
        history = merge_history(std::move(history), decode_runs(texts_of(*replies[i])));
      }
    }
  }
  return Done{};
}

Result<std::vector<std::string>> ScriptStore::kept_chunks(const LockName& name, std::int64_t from,
                                                          const CallLimits& limit)
{
  if (!traits().can_keep_runs) {
    return std::vector<std::string>();
  }
  ASSIGN_OR_RETURN(const auto reply, m_host->run(on_runs(name, calls::ReadRuns{.from = from}), limit));
  return texts_of(reply);
}

Result<Done> ScriptStore::keep_runs(const LockName& name, Millis history, const PerAnswer& limits)
{
  if (!traits().can_keep_runs) {
    return Done{};
  }
  constexpr std::int64_t last_chunks = -32;  // about as many runs as the event log has
  const auto log = m_host->logs({&name, 1}, limits.next());
  if (!log.front()) {
    return log.front().error();
  }
  std::vector<EventLogEntry> entries;
  entries.reserve(log.front()->size());
  for (const std::string& entry : *log.front()) {
    entries.push_back(EventLogEntry::of(entry));
  }
  // The log of an exclusive lock tells by the next grant that a run is over. The others must be asked for their holders.
  std::vector<PastRun> runs = rlock::past_runs(
      entries, [](const Owner&) { return true; }, 0);
  if (std::ranges::any_of(entries, &EventLogEntry::is_shared)) {
    const auto answer = ask(name, "0", limits.next());
    runs = answer ? past_runs_in(answer->known) : std::move(runs);
  }
  ASSIGN_OR_RETURN(const auto kept, kept_chunks(name, last_chunks, limits.next()));
  const auto chunks = encode_runs(runs_to_keep(runs, decode_runs(kept).runs));
  if (chunks.empty()) {
    return Done{};
  }
  ASSIGN_OR_RETURN(const auto reply,
                   m_host->run(on_runs(name, calls::KeepRuns{.memory = history, .most = most_chunks, .chunks = chunks}),
                               limits.next()));
  return reply.integer > static_cast<std::int64_t>(chunks_to_compact) ? compact_kept_runs(name, history, limits.next())
                                                                      : Result(Done{});
}

// Writes the list again. If another client has done so meanwhile, nothing changes.
Result<Done> ScriptStore::compact_kept_runs(const LockName& name, Millis history, const CallLimits& limit)
{
  const auto old = kept_chunks(name, 0, limit);
  if (!old || old->empty()) {
    return old ? Result(Done{}) : old.error();
  }
  LockHistory known = decode_runs(*old);
  const std::int64_t newest_ms = known.runs.empty() ? 0 : known.runs.front().start_ms;
  known = compact_history(std::move(known), newest_ms - history.count());
  const auto chunks = encode_runs(known.runs, known.complete_since_ms);
  const auto reply = m_host->run(
      on_runs(name,
              calls::ReplaceRuns{
                  .memory = history, .most = most_chunks, .old = old->size(), .last = old->back(), .chunks = chunks}),
      limit);
  return reply ? Result(Done{}) : reply.error();
}

// The script looks again whether the lock is held. A run that begins after that is in the event log as well.
Result<Forgotten> ScriptStore::forget_runs(const LockName& name, const CallLimits& limit)
{
  const auto state = inspect(name, limit);
  if (!state || state->held()) {
    return state ? Result(Forgotten{}) : Result<Forgotten>(state.error());
  }
  const LockKeys keys(name);
  const calls::ForgetKeys of_lock{.lock = keys.lock,
                                  .second = keys.second,
                                  .own_number = keys.own_number,
                                  .events = keys.events,
                                  .holder = keys.holder,
                                  .force = keys.force};
  ASSIGN_OR_RETURN(const auto reply,
                   m_host->run(ScriptCall{.script = scripts::forget, .keys = words_of(of_lock), .args = {}}, limit));
  answers::Forgotten answer;
  read_fields(reply.elements, 0, answer);
  Forgotten forgotten{.runs = answer.log, .permits = answer.permits};
  if (!traits().can_keep_runs) {
    return forgotten;
  }
  ASSIGN_OR_RETURN(const auto kept, m_host->run(on_runs(name, calls::ForgetRuns{}), limit));
  forgotten.runs = forgotten.runs || kept.integer > 0;
  return forgotten;
}

Result<Done> ScriptStore::note_skipped(const LockSpec& spec, const Owner& owner, const SkippedRun& run,
                                       const CallLimits& limit)
{
  const VerbRequest request{
      .lock = spec.name,
      .kind = spec.kind,
      .owner = owner,
      .verb =
          calls::Skip{.info = encode(spec.who), .waited = run.waited, .exit_code = run.exit_code, .newer = run.newer}};
  ASSIGN_OR_RETURN(const auto reply, m_host->run(request, limit));
  return is_answer<answers::Skipped>(reply) ? Result(Done{}) : unexpected(request, reply);
}

Result<bool> ScriptStore::forget_success(const LockName& name, const CallLimits& limit)
{
  const std::string done = LockKeys(name).done;
  const std::array<std::string_view, 2> argv{"DEL", done};
  ASSIGN_OR_RETURN(const auto reply, m_host->command(name, argv, limit));
  return reply.integer > 0;
}

Result<ForceAnswer> ScriptStore::force(ForceStep step, const ForceCall& call_for, const CallLimits& limit)
{
  const VerbRequest request{
      .lock = call_for.name,
      .kind = call_for.kind,
      .owner = call_for.owner,
      .verb = calls::Force{.requester = call_for.by, .step = step, .request_ttl = call_for.stands_for}};
  ASSIGN_OR_RETURN(const auto reply, m_host->run(request, limit));
  if (const auto held = answer_in<answers::Held>(reply)) {
    return ForceAnswer{ForceHeld{.holder = holder_of(*held),
                                 .listening = held->listening,
                                 .lasts = held->lasts,
                                 .silent_for = held->silent_for,
                                 .is_rlock = held->is_rlock}};
  }
  if (const auto broken = answer_in<answers::Broken>(reply)) {
    return ForceAnswer{ForceBroken{.holder = holder_of(*broken), .job_was_over = broken->job_was_over}};
  }
  if (const auto changed = answer_in<answers::Changed>(reply)) {
    return ForceAnswer{ForceChanged{holder_of(*changed)}};
  }
  return is_answer<answers::Free>(reply) ? Result(ForceAnswer{ForceFree{}}) : unexpected(request, reply);
}

// The event logs: lists that the scripts write.

Result<std::vector<std::vector<EventLogEntry>>> ScriptStore::read_logs(std::span<const EventLogQuery> queries,
                                                                       const CallLimits& limit)
{
  std::vector<LockName> names;
  for (const EventLogQuery& query : queries) {
    names.push_back(query.name);
  }
  const auto answers = m_host->logs(names, limit);
  std::vector<std::vector<EventLogEntry>> logs;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    if (!answers[i]) {
      return answers[i].error();
    }
    std::vector<EventLogEntry> entries;
    const auto& all = *answers[i];
    const auto seen = std::find(all.rbegin(), all.rend(), queries[i].after);
    const auto after = seen == all.rend() ? EventLogEntry::of(queries[i].after).time_us : 0;
    for (auto each = seen.base(); each != all.end(); ++each) {
      auto entry = EventLogEntry::of(*each);
      if (entry.time_us > after || after == 0) {
        entries.push_back(std::move(entry));
      }
    }
    logs.push_back(std::move(entries));
  }
  return logs;
}

Result<std::vector<LockName>> ScriptStore::find_logs(std::string_view pattern, const PerAnswer& limits)
{
  ASSIGN_OR_RETURN(const auto locks, m_host->find_logs(pattern, limits));
  return names_in(locks);
}

}  // namespace rlock
