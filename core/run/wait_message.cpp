// SPDX-License-Identifier: Apache-2.0
#include "run/wait_message.h"

#include <sys/ioctl.h>
#include <unistd.h>
#include <algorithm>
#include <chrono>
#include "base/duration.h"
#include "base/text.h"

namespace rlock {
namespace {

constexpr Millis first_line_after{1000};
constexpr Millis terminal_line_every{1000};
constexpr Millis log_line_every{60'000};
constexpr Millis not_told{1000};                // how long a server that was there may be away
constexpr std::size_t narrowest_terminal = 20;  // columns

std::size_t terminal_width()
{
  winsize size{};
  const bool known = ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > narrowest_terminal;
  return known ? size.ws_col : 80;
}

void write_terminal_line(const std::string& text)
{
  write_stderr_at_once("\r\x1b[K" + text);  // what a stopped terminal does not take is replaced by the next line
}

}  // namespace

WaitMessage::WaitMessage(std::string lock, const Clock& clock, const Log& log)
    : m_lock(std::move(lock)),
      m_clock(clock),
      m_log(log),
      m_is_terminal(log.verbosity() != Verbosity::quiet && log_style().format == LogFormat::text &&
                    ::isatty(STDERR_FILENO) == 1),
      m_due(clock.now() + first_line_after),
      m_server(clock, log)
{
}

WaitMessage::~WaitMessage()
{
  if (m_shown && m_is_terminal) {
    write_terminal_line("");
  }
}

void WaitMessage::refused(const Busy& busy)
{
  m_busy = busy;
  m_busy_at = m_clock.now();
  m_server.was_there();
}

void WaitMessage::server_failed(const Error& error)
{
  m_server_error = error.text;
  if (m_is_terminal) {
    show_on_terminal();
  } else {
    m_server.server_failed(error);
  }
}

void WaitMessage::server_answered()
{
  m_server_error.clear();
  m_server.server_answered();
  if (m_shown && m_is_terminal) {
    write_terminal_line("");  // until the next tick
  }
}

void WaitMessage::tick()
{
  m_due = m_clock.now() + (m_is_terminal ? terminal_line_every : log_line_every);
  if (m_is_terminal) {
    if (m_busy || !m_server_error.empty()) {
      show_on_terminal();
    }
  } else if (m_busy && m_server_error.empty()) {
    m_log.notice(
        line(m_lock),
        {.event = "waiting", .holder = m_busy->holder ? describe(*m_busy->holder) : "", .place = place_of(*m_busy)});
  }
}

void WaitMessage::show_on_terminal()
{
  m_shown = true;
  const std::size_t room = terminal_width() - 1;
  write_terminal_line(std::string(cut_to(line_prefix() + line(shortened(m_lock, room / 3)), room)));
}

std::string WaitMessage::line(const std::string& lock) const
{
  if (!m_server_error.empty()) {
    return "waiting for " + lock + ": " + m_server_error;
  }
  const auto age = std::chrono::duration_cast<Millis>(m_clock.now() - m_busy_at);
  return wait_text(lock, *m_busy, wall_clock_ms(), age);
}

std::optional<std::uint64_t> place_of(const Busy& busy)
{
  return busy.ticket != 0 ? std::optional(busy.waiters_ahead + 1) : std::nullopt;
}

namespace {

// ", held", or ", 3 of 3 permits are held, one": what the age and the holder follow.
std::string held_text(unsigned permits)
{
  const std::string all = std::to_string(permits);
  return permits > 1 ? ", " + all + " of " + all + " permits are held, one" : ", held";
}

}  // namespace

std::string wait_text(const std::string& lock, const Busy& busy, std::int64_t now_ms, Millis age)
{
  std::string text = "waiting for " + lock;
  if (!busy.not_ready.empty()) {
    return text + ": " + busy.not_ready;
  }
  if (const auto place = place_of(busy)) {
    text += ", place " + std::to_string(*place);
  }
  if (!busy.holder) {
    return text;
  }
  if (const HolderInfo* const freeze = freeze_of(busy.holder)) {
    const auto left = busy.ttl ? std::optional(std::max(*busy.ttl - age, Millis{0})) : std::nullopt;
    return text + ", " + freeze_text(*freeze, left, now_ms);
  }
  const auto& info = busy.holder->info;
  const bool has_age = info && info->since_ms > 0;
  text += held_text(busy.permits) + " " +
          (has_age ? "for " + show_roughly(Millis{std::max<std::int64_t>(0, now_ms - info->since_ms)}) + " " : "");
  text += "by " + holder_text(busy.holder->owner, info);
  if (busy.ttl && *busy.ttl > age) {
    text += ", ttl " + show_roughly(*busy.ttl - age);
  }
  const std::string job = info ? job_text(*info) : "";
  return text + (job.empty() ? "" : ", ") + job;
}

std::string busy_text(const std::string& lock, Millis waited, const std::optional<Holder>& holder,
                      std::optional<Millis> left, unsigned permits)
{
  const std::string text = lock + " is busy" + (waited > Millis{0} ? " after " + show(waited) : "");
  if (const HolderInfo* const freeze = freeze_of(holder)) {
    return text + ", " + freeze_text(*freeze, left, wall_clock_ms());
  }
  return text + (holder ? held_text(permits) + " by " + describe(*holder) : "");
}

std::string full_text(std::uint64_t full)
{
  const std::string callers = std::to_string(full) + (full == 1 ? " caller waits" : " callers wait");
  return full == 0 ? "" : "; " + callers + " already, and --max-waiting allows no more";
}

std::string newer_run(const Replaced& replaced)
{
  if (replaced.freeze_ended_by) {
    return printable(*replaced.freeze_ended_by);
  }
  return replaced.by ? describe({.owner = Owner::of(""), .count = 1, .info = replaced.by}) : "";
}

std::string replaced_text(const std::string& lock, const Replaced& replaced)
{
  const std::string by = newer_run(replaced);
  if (replaced.freeze_ended_by) {
    return lock + ": the freeze was ended" + (by.empty() ? "" : " by " + by);
  }
  return lock + ": a newer run has taken the place of this one" + (by.empty() ? "" : ": ") + by;
}

void ServerLine::server_failed(const Error& error)
{
  const Instant now = m_clock.now();
  m_failing_since = m_failing_since.value_or(now);
  const bool is_over_soon = m_was_there && now < *m_failing_since + not_told;
  if (!m_told && !is_over_soon) {
    m_told = true;
    m_log.notice(error.text + "; trying again", {.event = "unreachable"});
  }
}

void ServerLine::server_answered()
{
  if (m_told) {
    const auto away = std::chrono::ceil<Millis>(m_clock.now() - *m_failing_since);
    m_log.notice("the server can be used again after " + show_roughly(away), {.event = "reachable"});
  }
  m_failing_since.reset();
  m_told = false;
}

}  // namespace rlock
