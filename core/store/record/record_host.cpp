// SPDX-License-Identifier: Apache-2.0
#include "store/record/record_host.h"

#include <algorithm>
#include <limits>
#include <utility>
#include "base/text.h"
#include "base/wait.h"
#include "store/script/lock_keys.h"

namespace rlock::record {
namespace {

// A remembered state that is older is read again.
constexpr std::chrono::seconds remembered_for{10};

// The clock of a host may run faster than that of the store by this part.
constexpr int clock_drift_divisor = 500;

// The pause before the next try is random, up to this time for each conflict, and at most longest_pause.
constexpr std::chrono::microseconds pause_step{1500};
constexpr std::chrono::microseconds longest_pause{40'000};

Reply reply_of(const Value& value)
{
  Reply reply;
  switch (value.kind) {
    case Value::Kind::nil: break;
    case Value::Kind::integer:
      reply.kind = Reply::Kind::integer;
      reply.integer = value.integer;
      break;
    case Value::Kind::text:
    case Value::Kind::status:
      reply.kind = Reply::Kind::text;
      reply.text = value.text;
      break;
    case Value::Kind::error:
      reply.kind = Reply::Kind::error;
      reply.text = value.text;
      break;
    case Value::Kind::array:
      reply.kind = Reply::Kind::array;
      for (const Value& element : value.elements) {
        reply.elements.push_back(reply_of(element));
      }
  }
  return reply;
}

// A script fails on data that it does not expect, or by a defect.
Error script_failed(std::string_view lock, const std::string& text)
{
  const bool is_about_types = text.starts_with("WRONGTYPE");
  return {is_about_types ? ErrorCode::config : ErrorCode::internal,
          "the record of the lock " + printable(lock) + ": " + printable(text)};
}

Error busy_record(std::string_view lock)
{
  return {ErrorCode::server_not_ready, "the lock " + printable(lock) + " is changed by so many clients at once that " +
                                           "no change of this one got through (raise --server-timeout)"};
}

// The end of the last key, or that of a key without an end.
std::int64_t forget_time(const KeySpace::Keys& keys)
{
  std::int64_t last = 1;
  for (const auto& [key, entry] : keys) {
    if (!entry.expires) {
      return 0;
    }
    last = std::max(last, *entry.expires * 1000);
  }
  return last;
}

// The first owner in the lock's own key, in the layouts of all kinds.
std::string first_holder(const Entry& lock)
{
  if (const auto* hash = std::get_if<Hash>(&lock.data)) {
    const auto owner = std::ranges::find_if(*hash, [](const auto& field) { return field.first != "mode"; });
    return owner == hash->end() ? "?" : owner->first;
  }
  const auto* text = std::get_if<std::string>(&lock.data);
  return text != nullptr ? *text : "?";
}

// Permits have their holders in a key of their own. The lock's own key is the number of free ones.
bool has_permit_holders(const KeySpace::Keys& keys, const LockKeys& names)
{
  const auto owners = keys.find(names.second);
  const auto* set = owners == keys.end() ? nullptr : std::get_if<SortedSet>(&owners->second.data);
  return set != nullptr && !set->order.empty();
}

Face face_of(const KeySpace::Keys& keys, const LockKeys& names)
{
  Face face{.holder = {}, .until_us = 0, .forget_us = forget_time(keys)};
  const auto lock = keys.find(names.lock);
  if (has_permit_holders(keys, names)) {
    face.holder = "a permit";
  } else if (lock != keys.end() && !keys.contains(names.own_number)) {
    face.holder = printable(first_holder(lock->second));
    face.until_us = lock->second.expires.value_or(0) * 1000;
  }
  return face;
}

List log_in(const KeySpace::Keys& keys, const std::string& name)
{
  const auto log = keys.find(name);
  const auto* list = log == keys.end() ? nullptr : std::get_if<List>(&log->second.data);
  return list == nullptr ? List{} : *list;
}

bool has_expired(const KeySpace::Keys& keys, const std::string& name, std::int64_t time_us)
{
  const auto key = keys.find(name);
  return key != keys.end() && key->second.expires && time_us / 1000 > *key->second.expires;
}

}  // namespace

RecordHost::RecordHost(std::unique_ptr<Backend> backend, const Clock& clock, std::unique_ptr<Rng> rng)
    : m_backend(std::move(backend)), m_clock(clock), m_rng(std::move(rng))
{
  m_keys.count_subscribers = [this](const std::string& channel) {
    return static_cast<std::int64_t>(std::ranges::count(m_listeners, channel));
  };
  m_keys.on_publish = [this](const std::string& channel, const std::string& text) {
    const auto listeners = static_cast<std::int64_t>(std::ranges::count(m_listeners, channel));
    if (listeners > 0) {
      m_messages.push_back({channel, text});
    }
    return listeners;
  };
}

bool RecordHost::remembers(std::string_view lock) const
{
  return m_remembered && m_remembered->lock == lock && m_clock.now() - m_remembered->at < remembered_for;
}

// Its time is never later than the store's clock.
Snapshot RecordHost::remembered_state() const
{
  Snapshot state = m_remembered->state;
  const auto passed = std::chrono::duration_cast<std::chrono::microseconds>(m_clock.now() - m_remembered->at);
  state.time_us += passed.count() - passed.count() / clock_drift_divisor;
  return state;
}

Result<Snapshot> RecordHost::state_of(const Work& work, bool is_remembered, const CallLimits& limit)
{
  if (is_remembered) {
    return remembered_state();
  }
  m_remembered.reset();
  auto read = m_backend->read(work.lock, limit);
  if (read) {
    // The store's clock has moved on by at least what passes from now on.
    m_remembered = Remembered{.lock = std::string(work.lock), .state = *read, .at = m_clock.now()};
  }
  return read;
}

Result<RecordHost::Decision> RecordHost::decide(const Work& work, const Snapshot& state, const CallLimits& limit)
{
  auto record = decode(state.bytes);
  if (!record) {
    return record.error();
  }
  const auto name = LockName::parse(work.lock);
  const std::string log_key = name ? LockKeys(*name).events : "";
  const bool log_is_over = has_expired(record->keys, log_key, state.time_us);
  const List log_before = log_is_over ? List{} : log_in(record->keys, log_key);
  Decision decision;
  decision.log_base =
      record->log_base + (log_is_over ? static_cast<std::int64_t>(log_in(record->keys, log_key).size()) : 0);
  if (work.reads_log && !log_before.empty()) {
    auto whole = m_backend->events(work.lock, limit);
    if (!whole) {
      return whole.error();
    }
    record->keys[log_key].data = *std::move(whole);
  }
  m_keys.replace(std::move(record->keys));
  m_keys.set_time(state.time_us);
  m_listeners = state.listeners;
  m_messages.clear();
  decision.answer =
      work.source.empty() ? m_keys.command(work.words) : m_scripts.run(work.source, work.keys, work.words);
  if (decision.answer.kind == Value::Kind::error) {
    return script_failed(work.lock, decision.answer.text);
  }
  if (work.reads_log) {  // such a script changes nothing
    decision.bytes = state.bytes;
    return decision;
  }
  const List log_after = log_in(m_keys.keys(), log_key);
  const auto same = static_cast<std::size_t>(std::ranges::mismatch(log_before, log_after).in1 - log_before.begin());
  for (std::size_t i = same; i < log_after.size(); ++i) {
    decision.events.push_back({.id = decision.log_base + static_cast<std::int64_t>(i) + 1, .entry = log_after[i]});
  }
  if (log_after.size() < log_before.size()) {
    decision.last_event = decision.log_base + static_cast<std::int64_t>(log_after.size());
  }
  LockRecord after{.keys = m_keys.keys(), .log_base = decision.log_base};
  if (log_after.size() > entries_in_record) {
    const auto dropped = log_after.size() - entries_in_record;
    auto& list = std::get<List>(after.keys[log_key].data);
    list.erase(list.begin(), list.begin() + static_cast<std::ptrdiff_t>(dropped));
    after.log_base += static_cast<std::int64_t>(dropped);
  }
  decision.bytes = encode(after);
  return decision;
}

// Returns an Error when the time is over.
Result<Done> RecordHost::pause_after_conflict(int conflicts, const CallLimits& limit)
{
  const auto most = std::min<std::chrono::microseconds>(pause_step * conflicts, longest_pause);
  const Instant until =
      m_clock.now() + std::chrono::microseconds(below(*m_rng, static_cast<std::uint64_t>(most.count()) + 1));
  if (until >= limit.deadline) {
    return Error{ErrorCode::server_not_ready, {}};
  }
  return m_clock.sleep_until(until, limit.stop) == Wake::due ? Result(Done{}) : interrupted();
}

Result<Reply> RecordHost::execute(const Work& work, const CallLimits& limit)
{
  bool is_remembered = work.may_use_remembered && remembers(work.lock);
  for (int conflicts = 0;;) {
    const auto state = state_of(work, is_remembered, limit);
    if (!state) {
      return state.error();
    }
    const auto decision = decide(work, *state, limit);
    if (!decision) {
      m_remembered.reset();
      return decision.error();
    }
    if (decision->bytes == state->bytes && m_messages.empty()) {
      if (!is_remembered) {
        return reply_of(decision->answer);
      }
      is_remembered = false;  // what changes nothing must be true of a fresh state
      continue;
    }
    if (decision->bytes.size() > longest_record) {
      return Error{ErrorCode::server_not_ready,
                   "the record of the lock " + printable(work.lock) + " would have more than 1 MiB (too many waiters)"};
    }
    const auto name = LockName::parse(work.lock);
    const Face face = name ? face_of(m_keys.keys(), LockKeys(*name)) : Face{};
    auto committed = m_backend->write_if(work.lock, state->version,
                                         {.bytes = decision->bytes,
                                          .face = face,
                                          .events = decision->events,
                                          .last_event = decision->last_event,
                                          .messages = m_messages},
                                         limit);
    if (!committed) {
      m_remembered.reset();
      return committed.error();
    }
    if (auto* done = std::get_if<Committed>(&*committed)) {
      m_remembered->state.version = std::move(done->version);
      m_remembered->state.bytes = decision->bytes;
      return reply_of(decision->answer);
    }
    m_remembered.reset();
    is_remembered = false;
    if (const auto paused = pause_after_conflict(++conflicts, limit); !paused) {
      return paused.error().code == ErrorCode::interrupted ? paused.error() : busy_record(work.lock);
    }
  }
}

Result<Reply> RecordHost::run(const ScriptRequest& request, const CallLimits& limit)
{
  return execute({.lock = request.keys.front(),
                  .source = request.script.source(),
                  .keys = Words(request.keys.begin(), request.keys.end()),
                  .words = Words(request.args.begin(), request.args.end()),
                  .reads_log = request.reads_log,
                  .may_use_remembered = request.script.name.ends_with("_release")},
                 limit);
}

Result<Reply> RecordHost::command(const LockName& lock, std::span<const std::string_view> argv, const CallLimits& limit)
{
  return execute({.lock = lock.text(), .source = {}, .keys = {}, .words = Words(argv.begin(), argv.end())}, limit);
}

std::vector<Result<std::vector<std::string>>> RecordHost::logs(std::span<const LockName> locks, const CallLimits& limit)
{
  std::vector<Result<std::vector<std::string>>> all;
  for (const LockName& lock : locks) {
    all.push_back(m_backend->events(lock.text(), limit));
  }
  return all;
}

Result<std::unique_ptr<MessageSource>> RecordHost::subscribe(std::span<const LockChannel> channels,
                                                             const CallLimits& limit)
{
  m_remembered.reset();  // the version changes
  return m_backend->listen(channels, limit);
}

Result<std::vector<std::string>> RecordHost::find_locks(std::string_view glob, const PerAnswer& limits)
{
  return m_backend->list(glob, Backend::Which::held, limits.next());
}

Result<std::vector<std::string>> RecordHost::find_logs(std::string_view glob, const PerAnswer& limits)
{
  return m_backend->list(glob, Backend::Which::with_events, limits.next());
}

Result<Done> RecordHost::await_replicas(const LockRequest& request, const CallLimits& limit)
{
  return m_backend->await_replicas(request, limit);
}

Result<Done> RecordHost::erase(const LockName& lock, const CallLimits& limit)
{
  m_remembered.reset();
  return m_backend->erase(lock.text(), limit);
}

void RecordHost::drop_connection()
{
  m_remembered.reset();
  m_backend->drop_connection();
}

}  // namespace rlock::record
