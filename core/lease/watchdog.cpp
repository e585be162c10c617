// SPDX-License-Identifier: Apache-2.0
#include "lease/watchdog.h"

#include <poll.h>
#include <algorithm>
#include <array>
#include <cstdint>
#include <system_error>
#include <utility>
#include "base/text.h"

namespace rlock {
namespace {

constexpr Millis first_listen_pause{50};  // between two attempts to listen; each failure doubles it
constexpr Millis longest_listen_pause{1000};
constexpr Millis longest_listen_time{5000};
constexpr Millis listen_time_of_lock{2};  // beyond the first one: a cluster subscribes slot by slot
constexpr Millis hear_pause{50};          // after messages were read: a flood of them must cause few renewals
constexpr Millis listen_details_every{1000};
constexpr std::int64_t thread_attempts_per_ttl = 50;  // where the system refuses a thread
constexpr std::size_t largest_batch = 256;            // of renewals: other clients of the server wait meanwhile

}  // namespace

Watchdog::Watchdog(LockStore& store, WatchdogOptions options, const Clock& clock, const Log& log)
    : m_store(store),
      m_clock(clock),
      m_log(log),
      m_on_moved(std::move(options.on_moved)),
      m_leases(std::move(options.leases)),
      m_from_wait(std::move(options.listener)),
      m_listen_at(clock.now()),
      m_most_together(largest_batch)
{
  if (options.has_thread) {
    start_thread();
  }
}

Watchdog::~Watchdog() { stop(); }

void Watchdog::stop()
{
  if (m_thread.joinable()) {
    m_stop.request();
    m_thread.join();
  }
}

void Watchdog::add(LeaseWatch lease, Instant listen_at)
{
  m_leases.push_back(std::move(lease));
  m_from_wait.reset();
  m_listen_at = listen_at;
  m_wake_at = Instant{};
  m_is_over = false;
}

std::unique_ptr<Listener> Watchdog::take_listener()
{
  return m_listener ? std::move(m_listener) : std::move(m_from_wait);
}

std::string Watchdog::refusal() const { return m_refused.empty() ? "" : "; no thread of its own: " + m_refused; }

std::string Watchdog::trouble(const LeaseWatch& lease) const
{
  const std::string trouble = lease.trouble();
  return trouble.empty() ? "" : trouble + refusal();
}

std::vector<LeaseNews> Watchdog::take_news()
{
  const MutexLock lock(m_mutex);
  m_has_news.withdraw();
  return std::exchange(m_news, {});
}

std::string Watchdog::names() const
{
  const std::string first = printable(m_leases.front().spec().name.text());
  return m_leases.size() == 1 ? first : first + " and " + std::to_string(m_leases.size() - 1) + " more";
}

// A job that forks up to a limit may leave no thread.
void Watchdog::start_thread()
{
  const std::string refused_before = std::exchange(m_refused, "");
  m_interrupt = m_stop.token();
  m_thread_at = far_future;
  try {
    m_thread = std::thread([this] { watch(); });
  } catch (const std::system_error& refused) {
    m_refused = refused.code().message();
    m_thread_at = m_clock.now() + m_leases.front().lease().term().length / thread_attempts_per_ttl;
  }
  if (refused_before.empty() && !m_refused.empty()) {
    m_log.detail("no thread to renew " + names() + ": " + m_refused + "; the main thread renews it",
                 {.event = "no_thread", .key = m_leases.front().spec().name.text()});
  } else if (!refused_before.empty() && m_refused.empty()) {
    m_log.detail("a thread renews " + names());
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

// The descriptor of a listener may change when another listener on its connection reads.
int Watchdog::message_fd() const { return has_thread() || m_is_over || m_wake_fd < 0 ? -1 : m_listener->fd(); }

// Takes the steps that are due now.
void Watchdog::advance()
{
  m_wake_at = Instant{};
  m_wake_fd = -1;
  hear();
  std::vector<Due> due;
  Instant until = far_future;
  give_up_or_plan(due, until);
  m_is_over = std::ranges::all_of(m_leases, &LeaseWatch::is_over);
  if (m_is_over) {
    return;
  }
  if (!due.empty()) {
    renew(next_batch(std::move(due)));
  } else if (must_listen()) {
    listen();
  } else {
    rest_until(until);
  }
  m_is_over = std::ranges::all_of(m_leases, &LeaseWatch::is_over);
}

void Watchdog::give_up_or_plan(std::vector<Due>& due, Instant& rest_until)
{
  const Instant now = m_clock.now();
  for (std::size_t i = 0; i < m_leases.size(); ++i) {
    const LeaseWatch& lease = m_leases[i];
    if (lease.is_over()) {
      continue;
    }
    const Step step = lease.step(now);
    if (std::holds_alternative<GiveUp>(step)) {
      const std::string known = trouble(lease);
      note(i, Unconfirmed{known.empty() ? "no renewal in time: rlock was stopped or got no processor time" + refusal()
                                        : known});
    } else if (lease.is_failing() && !lease.is_urgent() && now < m_retry_at) {
      rest_until = std::min({rest_until, m_retry_at, lease.lease().signal_at(lease.policy().kill_after)});
    } else if (const auto* renewal = std::get_if<Renew>(&step)) {
      due.push_back({.which = i, .deadline = renewal->deadline});
    } else {
      rest_until = std::min(rest_until, std::get<Sleep>(step).until);
    }
  }
}

// Those that could not be renewed come last, and of these the one that was tried last.
std::vector<Watchdog::Due> Watchdog::next_batch(std::vector<Due> due) const
{
  const auto watch_of = [&](const Due& each) -> const LeaseWatch& { return m_leases[each.which]; };
  const auto rank = [&](const Due& each) { return watch_of(each).rank(); };
  const bool all_failed = watch_of(*std::ranges::min_element(due, {}, rank)).is_failing();
  const std::size_t most = std::min({due.size(), m_most_together, all_failed ? m_most_failing : due.size()});
  std::ranges::partial_sort(due, due.begin() + static_cast<std::ptrdiff_t>(most), {}, rank);
  due.resize(most);
  due.erase(std::ranges::find_if(due, [&](const Due& each) { return watch_of(each).is_failing() != all_failed; }),
            due.end());
  return due;
}

// A request takes no longer than the least patient of all leases allows, because it delays them all.
void Watchdog::renew(const std::vector<Due>& batch)
{
  const Instant sent_at = m_clock.now();
  const bool were_failing = m_leases[batch.front().which].is_failing();
  Instant deadline = far_future;
  for (const LeaseWatch& lease : m_leases) {
    deadline = lease.is_over() ? deadline : std::min(deadline, sent_at + lease.policy().longest_try);
  }
  std::vector<RenewalCall> calls;
  for (const Due& each : batch) {
    calls.push_back(m_leases[each.which].renewal(sent_at));
    deadline = std::min(deadline, each.deadline);
  }
  const auto answers = m_store.renew_each(calls, {.deadline = deadline, .stop = m_interrupt});
  bool all_answered = true;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    LeaseWatch& lease = m_leases[batch[i].which];
    if (answers[i]) {
      note(batch[i].which, lease.answered(*answers[i], sent_at));
    } else {
      lease.failed(answers[i].error(), sent_at, deadline);
      all_answered = false;
    }
  }
  m_most_together = answers.size() < batch.size() ? answers.size() : m_most_together;
  if (!all_answered) {
    m_store.drop_connection();
    m_most_failing = 1;
    m_retry_at = sent_at + m_leases[batch.front().which].policy().retry_every;
  } else if (were_failing) {
    m_most_failing = std::min(2 * m_most_failing, largest_batch);
  }
  tell_move();
}

void Watchdog::tell_move()
{
  bool has_moved = false;
  for (LeaseWatch& lease : m_leases) {
    has_moved = lease.take_move() || has_moved;
  }
  if (has_moved && m_on_moved) {
    m_on_moved(std::ranges::min_element(m_leases, {}, [](const LeaseWatch& each) {
                 return each.lease().valid_until();
               })->lease());
  }
}

void Watchdog::note(std::size_t which, const std::optional<LeaseEvent>& event)
{
  if (event && m_leases[which].note(*event)) {
    const MutexLock lock(m_mutex);
    m_news.push_back({.which = which, .event = *event, .is_over = m_leases[which].is_over()});
    m_has_news.request();
  }
}

void Watchdog::log_detail(const std::string& line)
{
  const Instant now = m_clock.now();
  if (now >= m_detail_at) {
    m_detail_at = now + listen_details_every;
    m_log.detail(line, {.event = "renewal_failed", .key = m_leases.front().spec().name.text()});
  }
}

bool Watchdog::must_listen() const
{
  return m_clock.now() >= m_listen_at && (!m_listener || m_heard < m_leases.size());
}

// A failure to listen costs only speed, because the server keeps what it published and each renewal asks for it. A
// holder hears each grant that found no holder, because that grant means that the lock was lost. An exclusive holder
// also hears releases, because a release means that another client took the lock away. The first renewal after the subscription
// finds what happened before it.
void Watchdog::listen()
{
  m_listener.reset();  // its end must not end what the new one hears
  auto opened = open_listener();
  if (opened) {
    m_listener = *std::move(opened);
    m_heard = m_leases.size();
    m_listen_pause = Millis{0};
    renew_all_at_once();
    return;
  }
  m_listen_pause = std::clamp(m_listen_pause * 2, first_listen_pause, longest_listen_pause);
  m_listen_at = m_clock.now() + m_listen_pause;
  const bool is_told = std::ranges::any_of(m_leases, &LeaseWatch::is_failing);  // by what renewals say
  if (opened.error().code != ErrorCode::interrupted && !is_told) {              // interrupted: the job has ended
    log_detail("cannot listen: " + reason_of(opened.error()));
  }
}

Result<std::unique_ptr<Listener>> Watchdog::open_listener()
{
  std::vector<LockSpec> specs;
  std::vector<Owner> owners;
  Millis try_for = longest_listen_time;
  Millis longest_try = longest_listen_time;
  for (const LeaseWatch& lease : m_leases) {
    specs.push_back(lease.spec());
    owners.push_back(lease.owner());
    try_for = lease.is_over() ? try_for : std::min(try_for, lease.policy().try_for);
    longest_try = lease.is_over() ? longest_try : std::min(longest_try, lease.policy().longest_try);
  }
  const auto more = listen_time_of_lock * static_cast<std::int64_t>(m_leases.size() - 1);
  const CallLimits limit{.deadline = m_clock.now() + std::min(try_for + more, std::max(longest_try, try_for)),
                         .stop = m_interrupt};
  auto opened = m_from_wait ? Result(std::move(m_from_wait)) : m_store.listen(specs, owners.front(), limit);
  const auto subscribed = opened ? (*opened)->hear_as_holder(owners, limit) : Result<Done>(opened.error());
  return subscribed ? std::move(opened) : subscribed.error();
}

void Watchdog::renew_all_at_once()
{
  for (LeaseWatch& lease : m_leases) {
    lease.renew_at_once();
  }
}

// What broke the connection may have removed the locks.
void Watchdog::hear()
{
  if (!m_listener || m_clock.now() < m_hear_at || !StopToken(m_listener->fd()).requested()) {
    return;
  }
  const auto heard = m_listener->heard(m_clock);
  m_hear_at = m_clock.now() + hear_pause;
  if (!heard) {
    m_listener.reset();
    m_listen_at = m_clock.now();  // at once, to hear the next grant
    return renew_all_at_once();
  }
  for (std::size_t i = 0; i < heard->size(); ++i) {
    if ((*heard)[i].look_in) {
      m_leases[i].renew_at_once();
    }
  }
}

void Watchdog::rest_until(Instant until)
{
  const Instant now = m_clock.now();
  const bool hears = m_listener && now >= m_hear_at;
  const bool hears_all = m_listener && m_heard == m_leases.size();
  m_wake_at = std::min({until, m_listener && !hears ? m_hear_at : far_future, hears_all ? far_future : m_listen_at});
  m_wake_fd = hears ? m_listener->fd() : -1;
}

}  // namespace rlock
