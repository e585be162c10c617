// SPDX-License-Identifier: Apache-2.0
#include "lease/watchdog.h"

#include "base/duration.h"
#include "base/text.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <system_error>
#include <utility>

#include <poll.h>

namespace rlock {
namespace {

constexpr Millis first_listen_pause{50};  // between two attempts to listen; each failure doubles it
constexpr Millis longest_listen_pause{1000};
constexpr Millis hear_pause{50};      // after messages were read: a flood of them must cause few renewals
constexpr Millis notice_after{1000};  // shorter failures are logged as details only
constexpr Millis details_every{1000};
constexpr Millis renew_every_while_stopping{1000};
constexpr std::int64_t thread_attempts_per_ttl = 50;  // where the system refuses a thread

// The text of an error without its advice, because another server does not help a lock on this server.
std::string reason_of(const Error& error)
{
  const std::size_t advice = error.code == ErrorCode::unreachable ? error.advice : 0;
  return error.text.substr(0, error.text.size() - advice);
}

}  // namespace

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

Watchdog::Watchdog(LockStore& store, WatchdogOptions options, const Clock& clock, const Log& log)
    : m_store(store),
      m_options(std::move(options)),
      m_policy(m_options.is_claim ? confirmation_policy(m_options.lease.term().length, m_options.kill_after)
                                  : renewal_policy(m_options.lease.term().length, m_options.spec.kind, m_options.renews,
                                                   m_options.kill_after)),
      m_clock(clock),
      m_log(log),
      m_state{
          .lease = m_options.lease, .last_kept = m_options.lease.term().from, .last_try = m_options.lease.term().from},
      m_listen_at(clock.now())
{
  start_thread();
}

Watchdog::~Watchdog() { stop(); }

void Watchdog::stop()
{
  if (m_thread.joinable()) {
    m_stop.request();
    m_thread.join();
  }
}

std::unique_ptr<Listener> Watchdog::take_listener()
{
  return m_listener ? std::move(m_listener) : std::move(m_options.listener);
}

std::string Watchdog::trouble() const
{
  const auto silence = std::chrono::floor<Millis>(m_clock.now() - m_state.last_kept);
  return m_trouble.empty() ? "" : "no renewal for " + show_roughly(silence) + ": " + m_trouble + refusal();
}

std::string Watchdog::refusal() const { return m_refused.empty() ? "" : "; no thread of its own: " + m_refused; }

std::optional<LeaseEvent> Watchdog::event()
{
  const MutexLock lock(m_mutex);
  return m_event;
}

// A job that forks up to a limit may leave no thread.
void Watchdog::start_thread()
{
  const std::string refused_before = std::exchange(m_refused, "");
  const std::string lock = printable(m_options.spec.name.text());
  m_interrupt = m_stop.token();
  try {
    m_thread = std::thread([this] { watch(); });
  } catch (const std::system_error& refused) {
    m_refused = refused.code().message();
    m_thread_at = m_clock.now() + m_state.lease.term().length / thread_attempts_per_ttl;
  }
  if (refused_before.empty() && !m_refused.empty()) {
    m_log.detail("no thread to renew " + lock + ": " + m_refused + "; the main thread renews it",
                 {.event = "no_thread", .key = m_options.spec.name.text()});
  } else if (!refused_before.empty() && m_refused.empty()) {
    m_log.detail("a thread renews " + lock);
  }
}

void Watchdog::watch()
{
  while (!m_is_over && !m_stop.token().requested()) {
    advance();
    std::array<pollfd, 2> waits{pollfd{.fd = m_stop.token().fd(), .events = POLLIN, .revents = 0},
                                pollfd{.fd = m_wake_fd, .events = POLLIN, .revents = 0}};
    if (!m_is_over) {
      ::poll(waits.data(), waits.size(), poll_timeout(m_clock.now(), m_wake_at));
    }
  }
}

void Watchdog::act(StopToken interrupt)
{
  if (has_thread() || m_is_over) {
    return;
  }
  if (m_clock.now() >= m_thread_at) {
    start_thread();
  }
  if (!has_thread()) {
    m_interrupt = interrupt;
    advance();
  }
}

Instant Watchdog::due() const { return has_thread() || m_is_over ? far_future : std::min(m_wake_at, m_thread_at); }

int Watchdog::message_fd() const { return has_thread() || m_is_over ? -1 : m_wake_fd; }

// Takes the steps that are due now.
void Watchdog::advance()
{
  m_wake_at = Instant{};
  m_wake_fd = -1;
  std::optional<LeaseEvent> event;
  const Step step = next_step(m_state, m_policy, m_clock.now());
  if (std::holds_alternative<GiveUp>(step)) {
    event = Unconfirmed{m_trouble.empty() ? "no renewal in time: rlock was stopped or got no processor time" + refusal()
                                          : trouble()};
  } else if (const auto* renewal = std::get_if<Renew>(&step)) {
    event = renew(renewal->deadline);
  } else if (std::exchange(m_renew_at_once, false) || has_news()) {
    event = renew(m_clock.now() + m_policy.try_for);
  } else {
    rest_until(std::get<Sleep>(step).until);
  }
  m_is_over = event && record(*std::move(event));
}

// Returns true when nothing is left to do.
bool Watchdog::record(LeaseEvent event)
{
  const bool is_release_requested = std::holds_alternative<ReleaseRequested>(event);
  const bool is_lost = std::holds_alternative<Lost>(event);
  if (!m_is_stopping) {
    const MutexLock lock(m_mutex);
    m_event = std::move(event);
    m_event_set.request();
  } else if (is_lost) {
    m_loss.request();
  }
  if (is_release_requested && !m_is_stopping) {
    m_is_stopping = true;
    m_policy.every = std::min(m_policy.every, renew_every_while_stopping);
    m_renew_at_once = true;  // the client that asked for the lock waits to hear that the job is being stopped
  }
  return !is_release_requested || m_is_revoked;
}

// A fixed lease is only checked. But the renewal of a foreign reader shortens the ttl of the whole lock, so a reader with a
// fixed lease asks for the rest of its own lease.
std::optional<LeaseEvent> Watchdog::renew(Instant deadline)
{
  const Instant sent_at = m_clock.now();
  LockRequest spec = m_options.spec;
  RenewOptions options{.confirms = m_options.is_claim, .stopping = m_is_stopping};
  if (!m_options.renews) {
    spec.ttl = std::chrono::floor<Millis>(m_state.lease.valid_until() - sent_at);
    options.only_checks = !std::holds_alternative<Reader>(spec.kind) || spec.ttl <= Millis{0};
  }
  const auto renewal = m_store.renew(spec, m_options.owner, options, {.deadline = deadline, .stop = m_interrupt});
  m_state.last_try = sent_at;
  if (!renewal) {
    m_store.drop_connection();
    note_failure(renewal.error(), sent_at, deadline);
    return std::nullopt;
  }
  return handle_answer(*renewal, sent_at);
}

std::optional<LeaseEvent> Watchdog::handle_answer(Renewal renewal, Instant sent_at)
{
  const auto time = std::visit([](const auto& answer) { return answer.at; }, renewal);
  const auto sample =
      time ? std::optional{ClockSample{.sent_at = sent_at, .heard_at = m_clock.now(), .server = *time}} : std::nullopt;
  if (auto* lost = std::get_if<NotHeld>(&renewal)) {
    m_is_revoked = lost->cause == LossCause::revoked;
    if (m_last_sample && sample) {
      lost->besides = clock_step_text(clock_step(*m_last_sample, *sample), m_state.lease.term().length);
    }
  } else if (m_options.renews && m_clock.now() >= m_state.lease.valid_until()) {
    return answered_too_late();
  } else {
    note_success(sent_at, std::get<Renewed>(renewal).lease, sample);
  }
  return lease_event_of(renewal);
}

// An attempt that had less time than usual does not replace the reason: its own reason is the lack of time.
void Watchdog::note_failure(const Error& error, Instant sent_at, Instant deadline)
{
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
void Watchdog::log_failure(const Error& error, Instant failing_since)
{
  const Instant now = m_clock.now();
  const std::string line = "cannot renew " + printable(m_options.spec.name.text()) + ": " + reason_of(error);
  if (m_failure_logged || (is_passing(error.code) && now - failing_since < notice_after)) {
    log_detail(line);
    return;
  }
  m_failure_logged = true;
  m_detail_at = now + details_every;
  const auto left = std::chrono::floor<Millis>(m_state.lease.signal_at(m_policy.kill_after) - now);
  m_log.notice(line + "; " + std::string(m_options.consequence) + " in " + show_roughly(std::max(left, Millis{0})),
               {.event = "renewal_failed", .key = m_options.spec.name.text()});
}

void Watchdog::log_detail(const std::string& line)
{
  const Instant now = m_clock.now();
  if (now >= m_detail_at) {
    m_detail_at = now + details_every;
    m_log.detail(line, {.event = "renewal_failed", .key = m_options.spec.name.text()});
  }
}

// An answer without a lease extends nothing.
void Watchdog::note_success(Instant sent_at, const std::optional<LeaseTerm>& lease,
                            const std::optional<ClockSample>& sample)
{
  if (sample) {
    compare_clocks(*sample, lease.value_or(m_state.lease.term()).length);
  }
  if (m_failure_logged) {
    const auto silence = std::chrono::floor<Millis>(m_clock.now() - m_state.last_kept);
    m_log.notice("renewed " + printable(m_options.spec.name.text()) + " again, after " + show_roughly(silence),
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
    m_options.on_moved(m_state.lease);
  }
}

// The next renewal is due when a part of the lease is over, wherever the lease began.
void Watchdog::plan_renewals(Instant sent_at)
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
void Watchdog::compare_clocks(const ClockSample& sample, Millis length)
{
  if (m_last_sample && sample.sent_at - m_last_sample->sent_at < length / 10) {
    return;
  }
  m_reduction = m_last_sample ? lease_reduction(*m_last_sample, sample, length) : Millis{0};
  const std::string step = m_last_sample ? clock_step_text(clock_step(*m_last_sample, sample), length) : "";
  if (!step.empty()) {
    m_log.detail(printable(m_options.spec.name.text()) + " is still held" + step);
  }
  m_last_sample = sample;
}

// A failure to listen costs only speed, because the server keeps what it published and each renewal asks for it. A
// holder hears each grant that found no holder, because that grant means that the lock was lost. An exclusive holder
// also hears releases, because a release means that another client took the lock away. Holders that share do not: they
// would hear each other, and would be counted as foreign waiters.
void Watchdog::listen()
{
  const CallLimits limit{.deadline = m_clock.now() + m_policy.try_for, .stop = m_interrupt};
  auto opened = m_options.listener ? Result(std::move(m_options.listener))
                                   : m_store.listen({&m_options.spec, 1}, m_options.owner, limit);
  const bool shared = kind_of(m_options.spec.kind).is_shared;
  auto subscribed = opened ? (*opened)->subscribe_to_grants(0, limit) : Result<Done>(opened.error());
  if (subscribed && !shared) {
    subscribed = (*opened)->hear_releases(0, limit);
  }
  if (subscribed) {
    m_listener = *std::move(opened);
    m_listen_pause = Millis{0};
  } else {
    m_listen_pause = std::clamp(m_listen_pause * 2, first_listen_pause, longest_listen_pause);
    m_listen_at = m_clock.now() + m_listen_pause;
    if (subscribed.error().code != ErrorCode::interrupted) {  // the job has ended
      log_detail("cannot listen: " + reason_of(subscribed.error()));
    }
  }
}

// Opens the listener when that is due, else reads its messages. Returns true when a renewal is worthwhile: after the
// subscription it finds what happened before.
bool Watchdog::has_news()
{
  if (!m_listener && m_clock.now() >= m_listen_at) {
    listen();
    return m_listener != nullptr;
  }
  return m_listener && m_clock.now() >= m_hear_at && StopToken(m_listener->fd()).requested() && is_renewal_worthwhile();
}

bool Watchdog::is_renewal_worthwhile()
{
  const auto heard = m_listener->heard(m_clock);
  m_hear_at = m_clock.now() + hear_pause;
  if (!heard) {
    m_listener.reset();
    m_listen_at = m_clock.now();  // at once, to hear the next grant
    return true;                  // what broke the connection may have removed the lock
  }
  return heard->front().look_in.has_value();
}

void Watchdog::rest_until(Instant until)
{
  const bool hears = m_listener && m_clock.now() >= m_hear_at;
  m_wake_at = hears ? until : std::min(until, m_listener ? m_hear_at : m_listen_at);
  m_wake_fd = hears ? m_listener->fd() : -1;
}

}  // namespace rlock
