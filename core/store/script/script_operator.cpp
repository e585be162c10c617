// SPDX-License-Identifier: Apache-2.0
// The abilities of ScriptStore that operators use: inspect, list, forget, force-unlock.
#include <algorithm>
#include <array>
#include <charconv>
#include <numeric>
#include "lock/kept_runs.h"
#include "lua/scripts.h"
#include "store/script/lock_keys.h"
#include "store/script/script_reply.h"
#include "store/script/script_store.h"

namespace rlock {
namespace {

// {owner, count, mode, info, age, whether it is revoked, owner, …}
std::vector<Holder> holders_in(const Reply& list)
{
  const ScriptReply parts(list);
  std::vector<Holder> holders;
  constexpr std::size_t parts_of_holder = 6;
  for (std::size_t at = 0; at + parts_of_holder <= parts.size(); at += parts_of_holder) {
    holders.push_back({.owner = Owner::of(parts.text(at)),
                       .count = parts.integer(at + 1),
                       .info = parts.info(at + 3),
                       .age = parts.ttl(at + 4),
                       .revoked = parts.integer(at + 5) == 1});
  }
  return holders;
}

// {owner, mode, info, whether it lives, owner, …}. Leaves out the dead waiters. One that does not listen is not dead where it may
// have closed its connection.
std::vector<Waiter> waiters_in(const Reply& list, bool spares_connections)
{
  constexpr std::size_t parts_of_waiter = 4;
  const ScriptReply parts(list);
  std::vector<Waiter> waiting;
  for (std::size_t at = 0; at + parts_of_waiter <= parts.size(); at += parts_of_waiter) {
    const bool is_connected = parts.integer(at + 3) == 1;
    if (is_connected || (spares_connections && at / parts_of_waiter >= listening_waiters)) {
      waiting.push_back({.owner = Owner::of(parts.text(at)), .info = parts.info(at + 2), .is_connected = is_connected});
    }
  }
  return waiting;
}

NativeFormat format_in(const ScriptReply& answer)
{
  const auto* const format = std::ranges::find(native_formats, answer.has(13) ? answer.text(13) : "");
  return format == native_formats.end() ? NativeFormat::none
                                        : static_cast<NativeFormat>(format - native_formats.begin());
}

// The mode of the request, refined by what the holders show.
LockKind mode_of(const LockKind& asked, const ScriptReply& answer, std::size_t holders)
{
  if (std::holds_alternative<Permits>(asked)) {
    return Permits{static_cast<unsigned>(std::max<std::int64_t>(answer.integer(3), 0))};
  }
  const bool reads = holders > 0 && ScriptReply(answer.part(5)).text(2) == reader_mode;
  return reads ? LockKind(Reader{}) : asked;
}

// {…, when in µs, ms until it is forgotten, now in µs}
std::optional<OnceSuccess> once_in(const ScriptReply& answer)
{
  if (!answer.has(9)) {
    return std::nullopt;
  }
  const auto at = static_cast<std::int64_t>(answer.number(9)) / 1000;
  const Millis ago{plausible_ms(std::max<std::int64_t>(0, static_cast<std::int64_t>(answer.number(11)) / 1000 - at))};
  return OnceSuccess{.at_ms = at, .remembered_for = ago + answer.millis(10), .ago = ago};
}

LockState state_of(const LockName& name, const LockKind& asked, const ScriptReply& answer, bool spares_connections)
{
  auto holders = holders_in(answer.part(5));
  const LockKind kind = mode_of(asked, answer, holders.size());
  return {.name = name,
          .kind = kind,
          .ttl = answer.ttl(2),
          .fence = answer.number(1),
          .holders = std::move(holders),
          .waiting = waiters_in(answer.part(6), spares_connections),
          .count = static_cast<std::uint64_t>(answer.integer(4)),
          .agreed = answer.integer(7) == 1,
          .once = once_in(answer),
          .proven = answer.integer(8) == 1,
          .beside = format_in(answer)};
}

bool is_known(const Reply& reply)
{
  const ScriptReply answer(reply);
  return answer.is("known") && answer.size() > 11;
}

// A list of holders that is not complete tells nothing about an owner that is not in it.
std::vector<PastRun> past_runs_in(const ScriptReply& answer)
{
  std::vector<EventLogEntry> entries;
  for (const Reply& entry : answer.size() > 12 ? answer.part(12).elements : std::vector<Reply>{}) {
    entries.push_back(EventLogEntry::of(entry.text));
  }
  const auto holders = holders_in(answer.part(5));
  const bool is_complete = static_cast<std::size_t>(std::max<std::int64_t>(answer.integer(4), 0)) <= holders.size();
  const auto waiting = answer.has(13) ? waiters_in(answer.part(6), true) : std::vector<Waiter>();
  const auto is_holder = [&](const Owner& owner) {
    // A holder by the record that stands behind a native client is shown as a waiter.
    return !is_complete || std::ranges::any_of(waiting, [&](const Waiter& waiter) { return waiter.owner == owner; }) ||
           std::ranges::any_of(holders, [&](const Holder& holder) { return holder.owner == owner; });
  };
  return past_runs(entries, is_holder, plausible_ms(static_cast<std::int64_t>(answer.number(11) / 1000)));
}

LockHistory history_in(const ScriptReply& answer)
{
  LockHistory history{.runs = past_runs_in(answer)};
  const std::size_t entries = answer.size() > 12 ? answer.part(12).elements.size() : 0;
  if (entries >= static_cast<std::size_t>(event_count) && !history.runs.empty()) {
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

std::string ms_text(Millis time) { return std::to_string(time.count()); }

// The lock is of no kind that rlock knows, or has a name that it cannot have.
bool is_about_one_key(const Error& error) { return error.code == ErrorCode::config || error.code == ErrorCode::usage; }

}  // namespace

// Inspects a lock of unknown kind. Only the key tells the kind: the first request is for a plain lock, and the second request is
// for the kind that the answer names.
Result<ScriptStore::Inspected> ScriptStore::ask(const LockName& name, std::string_view log_from,
                                                const CallLimits& limit)
{
  LockKind kind = Plain{};
  for (bool first = true;; first = false) {
    const Script& script = scripts_of(kind).inspect;
    auto reply = log_from.empty() ? call(script, name, kind, Owner::of(""), {}, limit)
                                  : call(script, name, kind, Owner::of(""), {log_from}, limit, true);
    if (!reply) {
      return reply.error();
    }
    const ScriptReply answer(*reply);
    if (is_known(*reply)) {
      return Inspected{kind, *std::move(reply)};
    }
    const KindDescriptor* const other = answer.is("other") ? kind_in_key(answer.text(1)) : nullptr;
    if (!first || other == nullptr) {
      return answer.unexpected(script, name);
    }
    kind = other->inspect_as;
  }
}

// In one round trip, and in another one for the locks of another kind than the plain one.
std::vector<Result<ScriptStore::Inspected>> ScriptStore::ask_batch(std::span<const LockName> names,
                                                                   const std::string& log_from, const PerAnswer& limits)
{
  std::vector<Result<Inspected>> answers(names.size(), Error{ErrorCode::internal, {}});
  std::vector<LockKind> kinds(names.size(), Plain{});
  std::vector<std::size_t> open(names.size());
  std::iota(open.begin(), open.end(), std::size_t{0});
  for (bool first = true; !open.empty(); first = false) {
    std::vector<ScriptCall> calls;
    for (const std::size_t i : open) {
      const Script& script = scripts_of(kinds[i]).inspect;
      calls.push_back(log_from.empty() ? call_of(script, names[i], kinds[i], Owner::of(""), {})
                                       : call_of(script, names[i], kinds[i], Owner::of(""), {log_from}));
      calls.back().reads_log = !log_from.empty();
    }
    auto replies = m_host->run_each(calls, limits.next());
    std::vector<std::size_t> of_other_kind;
    for (std::size_t at = 0; at < open.size(); ++at) {
      const std::size_t i = open[at];
      if (!replies[at]) {
        answers[i] = replies[at].error();
      } else if (is_known(*replies[at])) {
        answers[i] = Inspected{kinds[i], *std::move(replies[at])};
      } else {
        const ScriptReply answer(*replies[at]);
        const KindDescriptor* const other = answer.is("other") ? kind_in_key(answer.text(1)) : nullptr;
        if (first && other != nullptr) {
          kinds[i] = other->inspect_as;
          of_other_kind.push_back(i);
        } else {
          answers[i] = answer.unexpected(calls[at].script, names[i]);
        }
      }
    }
    open = std::move(of_other_kind);
  }
  return answers;
}

Result<Done> ScriptStore::ask_each(std::span<const LockName> names, const std::string& log_from,
                                   const PerAnswer& limits, const TakeAnswer& take)
{
  while (!names.empty()) {
    const auto some = names.first(std::min(batch, names.size()));
    names = names.subspan(some.size());
    const auto answers = ask_batch(some, log_from, limits);
    for (std::size_t i = 0; i < some.size(); ++i) {
      if (const auto taken = take(some[i], answers[i]); !taken) {
        return taken.error();
      }
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
  const auto answer = ask(name, "", limit);
  if (!answer) {
    return answer.error();
  }
  return state_in(name, *answer);
}

LockState ScriptStore::state_in(const LockName& name, const Inspected& answer) const
{
  LockState state = state_of(name, answer.kind, ScriptReply(answer.reply), traits().spares_connections);
  state.is_of_shedlock = !state.proven && traits().has_only_locks;
  return state;
}

// A hash is a lock by its fields. A string may be any data, so only strings with a holder record beside them are listed.
Result<std::vector<LockState>> ScriptStore::list(std::string_view pattern, const PerAnswer& limits)
{
  const auto keys = m_host->find_locks(pattern, limits);
  if (!keys) {
    return keys.error();
  }
  std::vector<LockName> names;
  for (const std::string& key : *keys) {
    if (auto name = LockName::parse(key)) {
      names.push_back(*std::move(name));
    }
  }
  return list_held(names, limits);
}

Result<std::vector<LockName>> ScriptStore::find_known(std::string_view pattern, const PerAnswer& limits)
{
  const auto held = list(pattern, limits);
  const auto remembered = held ? m_host->find_remembered(pattern, limits) : held.error();
  if (!remembered) {
    return remembered.error();
  }
  std::vector<LockName> known;
  for (const LockState& state : *held) {
    known.push_back(state.name);
  }
  for (const std::string& lock : *remembered) {
    if (auto name = LockName::parse(lock)) {
      known.push_back(*std::move(name));
    }
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
  const auto asked = ask_each(names, "", limits, take);
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
  const auto asked = ask_each(names, "", limits, take);
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
    histories.push_back(answer ? history_in(ScriptReply(answer->reply)) : LockHistory());
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
    std::vector<ScriptCall> calls;
    for (const std::size_t place : now) {
      calls.push_back({.script = scripts::runs, .keys = {LockKeys(names[place]).runs}, .args = {"read", "0"}});
    }
    const auto replies = m_host->run_each(calls, limits.next());
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

Result<std::vector<std::string>> ScriptStore::kept_chunks(const LockName& name, std::string_view from,
                                                          const CallLimits& limit)
{
  if (!traits().can_keep_runs) {
    return std::vector<std::string>();
  }
  const std::string key = LockKeys(name).runs;
  const std::array<std::string_view, 1> keys{key};
  const std::array<std::string_view, 2> args{"read", from};
  const auto reply = m_host->run({.script = scripts::runs, .keys = keys, .args = args}, limit);
  if (!reply) {
    return reply.error();
  }
  return texts_of(*reply);
}

Result<Done> ScriptStore::keep_runs(const LockName& name, Millis history, const PerAnswer& limits)
{
  if (!traits().can_keep_runs) {
    return Done{};
  }
  constexpr std::string_view last_chunks = "-32";  // about as many runs as the event log has
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
    runs = answer ? past_runs_in(ScriptReply(answer->reply)) : std::move(runs);
  }
  const auto kept = kept_chunks(name, last_chunks, limits.next());
  if (!kept) {
    return kept.error();
  }
  const auto chunks = encode_runs(runs_to_keep(runs, decode_runs(*kept).runs));
  if (chunks.empty()) {
    return Done{};
  }
  const std::string key = LockKeys(name).runs;
  const std::string memory = ms_text(history);
  const std::string most = std::to_string(most_chunks);
  const std::array<std::string_view, 1> keys{key};
  std::vector<std::string_view> args{"keep", memory, most};
  args.insert(args.end(), chunks.begin(), chunks.end());
  const auto reply = m_host->run({.script = scripts::runs, .keys = keys, .args = args}, limits.next());
  if (!reply) {
    return reply.error();
  }
  return reply->integer > static_cast<std::int64_t>(chunks_to_compact) ? compact_kept_runs(name, history, limits.next())
                                                                       : Result(Done{});
}

// Writes the list again. If another client has done so meanwhile, nothing changes.
Result<Done> ScriptStore::compact_kept_runs(const LockName& name, Millis history, const CallLimits& limit)
{
  const auto old = kept_chunks(name, "0", limit);
  if (!old || old->empty()) {
    return old ? Result(Done{}) : old.error();
  }
  LockHistory known = decode_runs(*old);
  const std::int64_t newest_ms = known.runs.empty() ? 0 : known.runs.front().start_ms;
  known = compact_history(std::move(known), newest_ms - history.count());
  const auto chunks = encode_runs(known.runs, known.complete_since_ms);
  const std::string key = LockKeys(name).runs;
  const std::string memory = ms_text(history);
  const std::string most = std::to_string(most_chunks);
  const std::string replaced = std::to_string(old->size());
  const std::array<std::string_view, 1> keys{key};
  std::vector<std::string_view> args{"replace", memory, most, replaced, old->back()};
  args.insert(args.end(), chunks.begin(), chunks.end());
  const auto reply = m_host->run({.script = scripts::runs, .keys = keys, .args = args}, limit);
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
  const std::array<std::string_view, 6> of_lock{keys.lock,   keys.second, keys.own_number,
                                                keys.events, keys.holder, keys.force};
  const auto reply = m_host->run({.script = scripts::forget, .keys = of_lock, .args = {}}, limit);
  if (!reply) {
    return reply.error();
  }
  const ScriptReply answer(*reply);
  Forgotten forgotten{.runs = answer.integer(0) > 0, .permits = answer.integer(1) > 0};
  if (!traits().can_keep_runs) {
    return forgotten;
  }
  const std::array<std::string_view, 1> list{keys.runs};
  const std::array<std::string_view, 1> args{"forget"};
  const auto kept = m_host->run({.script = scripts::runs, .keys = list, .args = args}, limit);
  if (!kept) {
    return kept.error();
  }
  forgotten.runs = forgotten.runs || kept->integer > 0;
  return forgotten;
}

Result<Done> ScriptStore::note_skipped(const LockRequest& spec, const Owner& owner, const SkippedRun& run,
                                       const CallLimits& limit)
{
  const Script& script = scripts_of(spec.kind).skip;
  const std::string exit_code = run.exit_code ? std::to_string(*run.exit_code) : "";
  const auto reply = call(script, spec.name, spec.kind, owner,
                          {encode(spec.who), std::to_string(run.waited.count()), exit_code}, limit);
  if (!reply) {
    return reply.error();
  }
  const ScriptReply answer(*reply);
  return answer.is("skipped") ? Result(Done{}) : answer.unexpected(script, spec.name);
}

Result<bool> ScriptStore::forget_success(const LockName& name, const CallLimits& limit)
{
  const std::string done = LockKeys(name).done;
  const std::array<std::string_view, 2> argv{"DEL", done};
  const auto reply = m_host->command(name, argv, limit);
  if (!reply) {
    return reply.error();
  }
  return reply->integer > 0;
}

// {'held', owner, count, info, listening, lasts, silent, is an rlock}
Result<ForceAnswer> ScriptStore::force(ForceStep step, const ForceCall& call_for, const CallLimits& limit)
{
  const Script& script = scripts_of(call_for.kind).force;
  const auto reply = call(script, call_for.name, call_for.kind, call_for.owner,
                          {call_for.by, name_of(step), std::to_string(call_for.stands_for.count())}, limit);
  if (!reply) {
    return reply.error();
  }
  const ScriptReply answer(*reply);
  if (answer.is("held")) {
    return ForceAnswer{ForceHeld{.holder = answer.holder(1),
                                 .listening = answer.integer(4),
                                 .lasts = answer.ttl(5),
                                 .silent_for = answer.ttl(6),
                                 .is_rlock = answer.integer(7) == 1}};
  }
  if (answer.is("broken")) {
    return ForceAnswer{ForceBroken{.holder = answer.holder(1), .job_was_over = answer.integer(4) == 1}};
  }
  if (answer.is("changed")) {
    return ForceAnswer{ForceChanged{answer.holder(1)}};
  }
  if (answer.is("free")) {
    return ForceAnswer{ForceFree{}};
  }
  return answer.unexpected(script, call_for.name);
}

// ScriptStore as an EventLog: reads the lists that the scripts write.

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
  const auto locks = m_host->find_logs(pattern, limits);
  if (!locks) {
    return locks.error();
  }
  std::vector<LockName> found;
  for (const std::string& lock : *locks) {
    if (auto name = LockName::parse(lock)) {
      found.push_back(*std::move(name));
    }
  }
  return found;
}

bool ScriptStore::is_about_one_lock(const Error& refused) const { return m_host->is_about_one_lock(refused); }

}  // namespace rlock
