// SPDX-License-Identifier: Apache-2.0
#include "engine/record_host.h"

#include <algorithm>
#include <utility>
#include "engine/line_stages.h"
#include "engine/lock_keys.h"

namespace rlock::record {

// After the script the places in the line need the presences, and these need what the look at the line makes of the answer.
RecordHost::RecordHost(std::unique_ptr<Backend> backend, const Clock& clock, std::unique_ptr<Rng> rng)
    : m_backend(std::move(backend)), m_rng(std::move(rng)), m_rounds(*m_backend, clock, *m_rng)
{
  const auto lines = m_backend->native_lines();
  if (!lines.empty()) {
    m_rounds.add(std::make_unique<LinePlace>());
  }
  if (Presences* const presences = m_backend->presences()) {
    auto stage = std::make_unique<PresenceStage>(*presences, clock);
    m_presences = stage.get();
    m_rounds.add(std::move(stage));
  }
  if (!lines.empty()) {
    m_rounds.add(std::make_unique<LineLook>(lines));
  }
}

Result<Reply> RecordHost::run(const ScriptRequest& request, const CallLimits& limit)
{
  ScriptCall call = call_of(request, false);
  ASSIGN_OR_RETURN(const auto lock, LockName::parse(call.keys.front()));
  const Work work{.lock = lock,
                  .script = &call.script,
                  .keys = std::move(call.keys),
                  .words = std::move(call.args),
                  .request = std::get_if<VerbRequest>(&request)};
  const bool acquires = work.as<calls::Acquire>() != nullptr;
  if (m_backend->is_shared() && acquires && !std::holds_alternative<Plain>(work.request->kind)) {
    return Error{
        // another program knows exclusive locks only
        ErrorCode::config,
        "a table or collection of ShedLock has exclusive locks only (leave out --shared, --exclusive, --permits and "
        "--format)"};
  }
  RETURN_IF_ERROR(check_has_line(m_backend->native_lines(), work));
  if (acquires) {
    m_backend->ask_for_rights();
  }
  return m_rounds.execute(work, limit);
}

// A release sends messages, for which an adapter remembers who listened at its last read.
std::vector<Result<Reply>> RecordHost::run_each(std::span<const ScriptRequest> requests, const CallLimits& limit)
{
  std::vector<LockName> locks;
  bool only_asks = true, reads_logs = false;
  for (const ScriptRequest& request : requests) {
    const auto* const verb = std::get_if<VerbRequest>(&request);
    const auto* const inspect = verb == nullptr ? nullptr : verb->as<calls::Inspect>();
    only_asks = only_asks && (verb == nullptr || verb->as<calls::Release>() == nullptr);
    reads_logs = reads_logs || (inspect != nullptr && inspect->log_from);
    const auto lock = verb == nullptr ? LockName::parse(std::get<ScriptCall>(request).keys.front()) : verb->lock;
    if (lock) {
      locks.push_back(*lock);
    }
  }
  if (only_asks) {
    m_rounds.read_ahead(locks, reads_logs, limit);
  }
  auto replies = ScriptHost::run_each(requests, limit);
  m_rounds.forget_ahead();
  return replies;
}

Result<Reply> RecordHost::command(const LockName& lock, std::span<const std::string_view> argv, const CallLimits& limit)
{
  return m_rounds.execute({.lock = lock, .words = Words(argv.begin(), argv.end())}, limit);
}

// The store does not know when a log is over; the record does.
Result<std::vector<std::string>> RecordHost::log_of(const LockName& lock, const CallLimits& limit)
{
  ASSIGN_OR_RETURN(const auto state,
                   m_rounds.ask_members(limit, [&](const CallLimits& share) { return m_rounds.read(lock, share); }));
  return log_in(state.record, LockKeys(lock).events, state.read.time_us).is_over
             ? Result(std::vector<std::string>())
             : m_rounds.ask_members(limit, [&](const CallLimits& share) { return m_rounds.log_of(state, share); });
}

std::vector<Result<std::vector<std::string>>> RecordHost::logs(std::span<const LockName> locks, const CallLimits& limit)
{
  constexpr std::size_t batch = 32;
  std::vector<Result<std::vector<std::string>>> all;
  while (!locks.empty()) {
    const auto some = locks.first(std::min(batch, locks.size()));
    locks = locks.subspan(some.size());
    m_rounds.read_ahead(some, true, limit);
    for (const LockName& lock : some) {
      all.push_back(log_of(lock, limit));
    }
  }
  m_rounds.forget_ahead();
  return all;
}

Result<std::unique_ptr<MessageSource>> RecordHost::subscribe(std::span<const LockChannel> channels,
                                                             const CallLimits& limit)
{
  // The version changes, also for an owner that is in no queue and only looks at the lock: a commit that was decided before would
  // send it no message, and what it asks after this (is_queued, inspect) writes nothing that could refuse that commit.
  m_rounds.forget();
  return m_backend->listen(channels, limit);
}

Result<std::vector<std::string>> RecordHost::find_locks(std::string_view glob, const PerAnswer& limits)
{
  return m_rounds.ask_members(
      limits.next(), [&](const CallLimits& share) { return m_backend->list(glob, Backend::Which::held, share); });
}

Result<std::vector<std::string>> RecordHost::find_logs(std::string_view glob, const PerAnswer& limits)
{
  return m_rounds.ask_members(limits.next(), [&](const CallLimits& share) {
    return m_backend->list(glob, Backend::Which::with_events, share);
  });
}

Result<Done> RecordHost::erase(const LockName& lock, const CallLimits& limit)
{
  m_rounds.forget();
  return m_backend->erase(lock.text(), limit);
}

void RecordHost::drop_connection()
{
  m_rounds.forget();
  m_backend->drop_connection();
}

}  // namespace rlock::record
