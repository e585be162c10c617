// SPDX-License-Identifier: Apache-2.0
#include "lease/lease_watch.h"

#include <algorithm>
#include <utility>
#include "base/duration.h"
#include "base/text.h"

namespace rlock {
namespace {

constexpr Millis notice_after{1000};  // shorter failures are logged as details only
constexpr Millis details_every{1000};
constexpr Millis renew_every_while_stopping{1000};

}  // namespace

std::string reason_of(const Error& error)
{
  const std::size_t advice = error.code == ErrorCode::unreachable ? error.advice : 0;
  return error.text.substr(0, error.text.size() - advice);
}

LeaseEvent answered_too_late() { return Unconfirmed{"the answer to its renewal came after the end of the lease"}; }

std::optional<LeaseEvent> lease_event_of(const Renewal& renewal)
{
  if (const auto* lost = std::get_if<NotHeld>(&renewal)) {
    if (lost->cause == LossCause::revoked) {
      return ReleaseRequested{lost->forced ? lost->forced->by : "an operator"};
    }
    return Lost{*lost};
  }
  const auto& forced = std::get<Renewed>(renewal).forced;
  return forced ? std::optional<LeaseEvent>{ReleaseRequested{forced->by}} : std::nullopt;
}

LeaseWatch::LeaseWatch(LeaseWatchOptions options, const Clock& clock, const Log& log)
    : m_options(std::move(options)),
      m_policy(m_options.is_claim ? confirmation_policy(m_options.lease.term().length, m_options.kill_after)
                                  : renewal_policy(m_options.lease.term().length, m_options.spec.kind, m_options.renews,
                                                   m_options.kill_after)),
      m_clock(&clock),
      m_log(&log),
      m_state{
          .lease = m_options.lease, .last_kept = m_options.lease.term().from, .last_try = m_options.lease.term().from}
{
}

std::string LeaseWatch::trouble() const
{
  const auto silence = std::chrono::floor<Millis>(m_clock->now() - m_state.last_kept);
  return m_trouble.empty() ? "" : "no renewal for " + show_roughly(silence) + ": " + m_trouble;
}

Step LeaseWatch::step(Instant now) const
{
  const Step step = next_step(m_state, m_policy, now);
  return m_renew_at_once && std::holds_alternative<Sleep>(step) ? Renew{now + m_policy.try_for} : step;
}

bool LeaseWatch::note(const LeaseEvent& event)
{
  const bool is_requested = std::holds_alternative<ReleaseRequested>(event);
  const bool is_first = !m_is_stopping;
  if (is_requested && is_first) {
    m_is_stopping = true;
    m_policy.every = std::min(m_policy.every, renew_every_while_stopping);
    m_renew_at_once = true;  // the client that asked for the lock waits to hear that the job is being stopped
  }
  m_is_over = !is_requested || m_is_revoked;
  return is_first || m_is_over;
}

// A fixed lease is only checked. But the renewal of a foreign reader shortens the ttl of the whole lock, so a reader with a
// fixed lease asks for the rest of its own lease.
RenewalCall LeaseWatch::renewal(Instant sent_at) const
{
  const LockSpec& spec = m_options.spec;
  RenewalCall call{.spec = {.name = spec.name, .kind = spec.kind, .ttl = spec.ttl, .who = {}, .once = {}},
                   .owner = m_options.owner,
                   .options = {.confirms = m_options.is_claim, .stopping = m_is_stopping}};
  if (!m_options.renews) {
    call.spec.ttl = std::chrono::floor<Millis>(m_state.lease.valid_until() - sent_at);
    call.options.only_checks = !std::holds_alternative<Reader>(spec.kind) || call.spec.ttl <= Millis{0};
  }
  return call;
}

std::optional<LeaseEvent> LeaseWatch::answered(Renewal renewal, Instant sent_at)
{
  m_state.last_try = sent_at;
  m_renew_at_once = false;
  const auto time = std::visit([](const auto& answer) { return answer.at; }, renewal);
  const auto sample =
      time ? std::optional{ClockSample{.sent_at = sent_at, .heard_at = m_clock->now(), .server = *time}} : std::nullopt;
  if (auto* lost = std::get_if<NotHeld>(&renewal)) {
    m_is_revoked = lost->cause == LossCause::revoked;
    if (m_last_sample && sample) {
      lost->besides = clock_step_text(clock_step(*m_last_sample, *sample), m_state.lease.term().length);
    }
  } else if (m_options.renews && m_clock->now() >= m_state.lease.valid_until()) {
    return answered_too_late();
  } else {
    note_success(sent_at, std::get<Renewed>(renewal).lease, sample);
  }
  return lease_event_of(renewal);
}

// An attempt that had less time than usual does not replace the reason: its own reason is the lack of time.
void LeaseWatch::failed(const Error& error, Instant sent_at, Instant deadline)
{
  m_state.last_try = sent_at;
  m_renew_at_once = false;
  if (error.code == ErrorCode::interrupted) {
    return;
  }
  if (!m_failing_since) {
    m_failing_since = sent_at;
  }
  log_failure(error, *m_failing_since);
  if (m_trouble.empty() || deadline - sent_at >= m_policy.try_for) {
    m_trouble = reason_of(error);
  }
}

// Logs one notice for all failures in a row: after notice_after, or at once if the failure cannot pass by itself.
void LeaseWatch::log_failure(const Error& error, Instant failing_since)
{
  const Instant now = m_clock->now();
  const std::string line = "cannot renew " + printable(m_options.spec.name.text()) + ": " + reason_of(error);
  if (m_failure_logged || (is_passing(error.code) && now - failing_since < notice_after)) {
    log_detail(line);
    return;
  }
  m_failure_logged = true;
  m_detail_at = now + details_every;
  const auto left = std::chrono::floor<Millis>(m_state.lease.signal_at(m_policy.kill_after) - now);
  m_log->notice(line + "; " + std::string(m_options.consequence) + " in " + show_roughly(std::max(left, Millis{0})),
                {.event = "renewal_failed", .key = m_options.spec.name.text()});
}

void LeaseWatch::log_detail(const std::string& line)
{
  const Instant now = m_clock->now();
  if (now >= m_detail_at) {
    m_detail_at = now + details_every;
    m_log->detail(line, {.event = "renewal_failed", .key = m_options.spec.name.text()});
  }
}

// An answer without a lease extends nothing.
void LeaseWatch::note_success(Instant sent_at, const std::optional<LeaseTerm>& lease,
                              const std::optional<ClockSample>& sample)
{
  if (sample) {
    compare_clocks(*sample, lease.value_or(m_state.lease.term()).length);
  }
  if (m_failure_logged) {
    const auto silence = std::chrono::floor<Millis>(m_clock->now() - m_state.last_kept);
    m_log->notice("renewed " + printable(m_options.spec.name.text()) + " again, after " + show_roughly(silence),
                  {.event = "renewed", .key = m_options.spec.name.text()});
  }
  m_state.last_kept = sent_at;
  m_trouble.clear();
  m_failing_since.reset();
  m_failure_logged = false;
  if (m_options.renews && lease) {
    m_options.is_claim = false;
    m_state.lease = LeaseBudget(*lease, m_reduction);
    plan_renewals(sent_at);
    m_has_moved = true;
  }
}

// The next renewal is due when a part of the lease is over, wherever the lease began.
void LeaseWatch::plan_renewals(Instant sent_at)
{
  const auto [from, length] = m_state.lease.term();
  m_policy = renewal_policy(length, m_options.spec.kind, m_options.renews, m_options.kill_after);
  const Millis age = std::max(std::chrono::ceil<Millis>(sent_at - from), Millis{0});
  m_policy.every = std::max(m_policy.every - age, m_policy.retry_every);
  if (m_is_stopping) {
    m_policy.every = std::min(m_policy.every, renew_every_while_stopping);
  }
}

// Renewals that follow each other closely, after a message, are too close to measure the speed of a clock.
void LeaseWatch::compare_clocks(const ClockSample& sample, Millis length)
{
  if (m_last_sample && sample.sent_at - m_last_sample->sent_at < length / 10) {
    return;
  }
  m_reduction = m_last_sample ? lease_reduction(*m_last_sample, sample, length) : Millis{0};
  const std::string step = m_last_sample ? clock_step_text(clock_step(*m_last_sample, sample), length) : "";
  if (!step.empty()) {
    m_log->detail(printable(m_options.spec.name.text()) + " is still held" + step);
  }
  m_last_sample = sample;
}

}  // namespace rlock
