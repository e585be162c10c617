// SPDX-License-Identifier: Apache-2.0
#include "run/waiting_line.h"

#include "base/duration.h"
#include "base/stderr.h"
#include "base/text.h"
#include "run/ancestry.h"

#include <algorithm>
#include <chrono>

#include <sys/ioctl.h>
#include <unistd.h>

namespace rlock {
namespace {

constexpr Millis first_line_after{1000};
constexpr Millis terminal_line_every{1000};
constexpr Millis log_line_every{60'000};
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

// The newer run that took the place; empty: unknown.
std::string newer_run(const Replaced& replaced)
{
  return replaced.by ? describe({.owner = Owner::of(""), .count = 1, .info = replaced.by}) : "";
}

}  // namespace

WaitingLine::WaitingLine(std::string lock, const Clock& clock, const Log& log, std::function<void()> when_first)
    : m_lock(std::move(lock)),
      m_clock(clock),
      m_log(log),
      m_when_first(std::move(when_first)),
      m_is_terminal(log.verbosity() != Verbosity::quiet && log_style().format == LogFormat::text &&
                    ::isatty(STDERR_FILENO) == 1),
      m_due(clock.now() + first_line_after),
      m_server(clock, log)
{
}

WaitingLine::~WaitingLine()
{
  if (m_shown && m_is_terminal) {
    write_terminal_line("");
  }
}

void WaitingLine::refused(const Busy& busy)
{
  m_busy = busy;
  m_busy_at = m_clock.now();
  m_server.was_there();
}

void WaitingLine::server_failed(const Error& error)
{
  m_server_error = error.text;
  if (m_is_terminal) {
    show_on_terminal();
  } else {
    m_server.server_failed(error);
  }
}

void WaitingLine::server_answered()
{
  m_server_error.clear();
  m_server.server_answered();
  if (m_shown && m_is_terminal) {
    write_terminal_line("");  // until the next tick
  }
}

void WaitingLine::tick()
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

void WaitingLine::show_on_terminal()
{
  m_shown = true;
  const std::size_t room = terminal_width() - 1;
  write_terminal_line(std::string(cut_to(line_prefix() + line(shortened(m_lock, room / 3)), room)));
}

std::string WaitingLine::line(const std::string& lock) const
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

std::string wait_text(const std::string& lock, const Busy& busy, std::int64_t now_ms, Millis age)
{
  std::string text = "waiting for " + lock;
  if (!busy.unfit.empty()) {
    return text + ": " + busy.unfit;
  }
  if (const auto place = place_of(busy)) {
    text += ", place " + std::to_string(*place);
  }
  if (!busy.holder) {
    return text;
  }
  const auto& info = busy.holder->info;
  const bool has_age = info && info->since_ms > 0;
  text += ", held " +
          (has_age ? "for " + show_roughly(Millis{std::max<std::int64_t>(0, now_ms - info->since_ms)}) + " " : "");
  text += "by " + describe_who(busy.holder->owner, info);
  if (busy.ttl && *busy.ttl > age) {
    text += ", ttl " + show_roughly(*busy.ttl - age);
  }
  const std::string job = info ? describe_job(*info) : "";
  return text + (job.empty() ? "" : ", ") + job;
}

std::string busy_text(const std::string& lock, Millis waited, const std::optional<Holder>& holder)
{
  return lock + " is busy" + (waited > Millis{0} ? " after " + show(waited) : "") +
         (holder ? ", held by " + describe(*holder) : "");
}

std::string replaced_text(const std::string& lock, const Replaced& replaced)
{
  const std::string by = newer_run(replaced);
  return lock + ": a newer run has taken the place of this one" + (by.empty() ? "" : ": ") + by;
}

RunEnd report_busy(const BusyReport& report, const Log& log)
{
  if (report.last.replaced) {
    log.notice(replaced_text(report.lock, *report.last.replaced),
               {.event = "replaced", .holder = newer_run(*report.last.replaced), .exit_code = report.exit_code});
    return ExitWith{report.exit_code};
  }
  const std::optional<Holder>& holder = report.last.holder;
  const Millis waited = report.waits_for_itself ? Millis{0} : report.wait.value_or(Millis{0});
  log.notice(
      busy_text(report.lock, waited, holder) + (report.waits_for_itself ? std::string(waits_for_itself_text) : ""),
      {.event = "busy",
       .holder = holder ? describe(*holder) : "",
       .place = place_of(report.last),
       .exit_code = report.exit_code});
  return ExitWith{report.exit_code};
}

}  // namespace rlock
