// SPDX-License-Identifier: Apache-2.0
#include "cli/verbs/freeze.h"

#include "base/duration.h"
#include "base/log.h"
#include "base/shown_time.h"
#include "base/text.h"
#include "cli/options/lock.h"
#include "cli/options/output.h"
#include "cli/options/take.h"
#include "cli/output/json.h"
#include "cli/output/output.h"
#include "cli/verbs/dispatch.h"
#include "cli/verbs/known_locks.h"
#include "lock/reach_server.h"
#include "run/environment.h"
#include "run/verdict.h"
#include "run/wait_message.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <system_error>
#include <utility>

#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace rlock::cli {

Result<RunRequest> freeze_of_lock(const RunRequest& wanted, const std::string& reason, const LockState& about)
{
  if (std::holds_alternative<Permits>(wanted.kind) || std::holds_alternative<Permits>(about.kind)) {
    return usage(printable(about.name.text()) +
                 ": permits cannot be frozen: a freeze is one holder, and there may be more");
  }
  RETURN_IF_ERROR(check_can_be_taken(about.name));
  RunRequest request = wanted;
  request.held_for = HeldFor::nobody;
  request.names = {about.name};
  request.automatic = false;
  request.freeze = reason;
  const bool is_plain = std::holds_alternative<Plain>(wanted.kind) && wanted.beside == NativeFormat::none;
  request.kind = kind_of(is_plain ? about.kind : wanted.kind).inspect_as;
  request.beside = is_plain ? about.beside : wanted.beside;
  return request;
}

Result<RunEnd> freeze(const RunRequest& request, const RunContext& context, const std::function<void()>& frozen)
{
  return acquire(request, context, [&](std::span<const TakenLock>, const auto&) {
    frozen();
    return finish_output();
  });
}

namespace {

Millis left_of(const RunRequest& request)
{
  return request.ends_at ? std::max(std::chrono::ceil<Millis>(*request.ends_at - BootClock().now()), Millis{0})
                         : request.ttl;
}

// As the server has it.
HolderInfo record_of(const RunRequest& request)
{
  const std::string user = user_name();
  return {.host = host_name(),
          .user = user,
          .sudo_user = sudo_user(request.environment, user),
          .command = {},
          .label = {},
          .lease = left_of(request),
          .freeze = request.freeze};
}

struct RawFreeze {
  RawTake take;
  RunRequest request;
  std::string reason;
  std::optional<Millis> lasts;
  std::string until;               // empty: not given
  std::optional<Instant> ends_at;  // what `until` says
  bool json = false;
};

Result<Done> read_freeze_reason(const Given& given, RawFreeze& raw)
{
  const Result<Done> done = read_text(given, raw.reason);
  return done && given.value.empty() ? usage("--reason: the text is empty (say why no job may start)") : done;
}

constexpr OptionRow<RawFreeze> freeze_rows[] = {
    {{.names = "--for",
      .value = "DUR",
      .help = "how long, from the moment when the freeze takes effect",
      .range = fixed_lease_range,
      .excludes = {"--until"}},
     set<&RawFreeze::lasts>},
    {{.names = "--until",
      .value = "TIME",
      .help = "when it ends, whenever it takes effect, such as 22:00 (the next one), 2026-11-26, '2026-11-26 22:00' or "
              "2026-11-26T21:00Z"},
     set<&RawFreeze::until>},
    {{.names = "--reason",
      .value = "TEXT",
      .help = "why, for those whose jobs do not start, and for status, list and events"},
     read_freeze_reason},
};
constexpr OptionRow<bool> json_object_row = json_row("print one JSON object for each lock when it is frozen");

// Whether the server knows nothing of a lock of this name: it is free, and has not been held for a long time (fence_memory).
bool is_unknown(const LockState& state)
{
  return !state.held() && state.waiting.empty() && state.fence == 0 && !state.once;
}

// The locks to freeze: a name that was given, and what the server knows of a pattern.
Result<std::vector<RunRequest>> requests_of(const RawFreeze& raw, const RunRequest& wanted, const Call& call)
{
  ASSIGN_OR_RETURN(const auto opened, open_server(raw.take.server, call.environment));
  const auto subjects = resolve_subjects(raw.take.keys, call.operands);
  const auto names = known_locks(opened, raw.take.keys, call.operands);
  if (!subjects || !names) {
    return subjects ? names.error() : subjects.error();
  }
  std::vector<RunRequest> requests;
  requests.reserve(names->size());
  for (const LockName& name : *names) {
    const bool is_named = std::ranges::any_of(*subjects, [&](const Subject& subject) {
      const auto* const given = std::get_if<LockName>(&subject);
      return given != nullptr && *given == name;
    });
    const Result<LockState> state = opened.store->inspect(name, opened.limit());
    if (!is_named && (state ? state->held() && !state->proven : state.error().code == ErrorCode::config)) {
      continue;  // no lock of rlock
    }
    ASSIGN_OR_RETURN(auto request,
                     state ? freeze_of_lock(wanted, raw.reason, *state) : Result<RunRequest>(state.error()));
    if (is_unknown(*state)) {
      Log(raw.take.verbosity()).notice(printable(name.text()) + ": no lock of this name is known");
    }
    request.ends_at = raw.ends_at;
    requests.push_back(std::move(request));
  }
  if (std::ranges::any_of(*subjects, [](const Subject& each) { return std::holds_alternative<Pattern>(each); })) {
    Log(raw.take.verbosity())
        .notice("a pattern takes the locks that the server knows, " + std::to_string(requests.size()) +
                " of them now; jobs under other names that match start as before");
  }
  return requests;
}

int code_of(const Result<RunEnd>& end)
{
  return end ? exit_code_of(*end) : static_cast<int>(exit_code_of(end.error().code));
}

void tell(const RunRequest& request, const Error& error)
{
  Log(Verbosity::normal)
      .error(printable(request.name().text()) + " is not frozen: " + error.text,
             {.event = "failed", .key = request.name().text()});
}

// What rlock freeze does with its locks. Used from one thread.
class Freezes {
 public:
  Freezes(const RawFreeze& raw, const Call& call) : m_raw(raw), m_call(call) {}

  Result<RunEnd> one(const RunRequest& request) { return take(request, Log(m_raw.take.verbosity())); }

  // First those that are free, then the others together: a process for each stands first in its line.
  Result<RunEnd> several(const std::vector<RunRequest>& requests)
  {
    std::vector<RunRequest> busy;
    int worst = 0;
    for (const RunRequest& request : requests) {
      const Result<RunEnd> end = take(at_once(request), Log(Verbosity::quiet));
      if (end && std::holds_alternative<DieOf>(*end)) {
        return end;
      }
      if (end && exit_code_of(*end) == request.busy_code) {
        busy.push_back(request);
      } else if (!end) {
        tell(request, end.error());
        worst = std::max(worst, code_of(end));
      }
    }
    const bool waits = m_raw.request.wait != Millis{0};
    if (!waits || busy.empty()) {
      std::ranges::for_each(busy, [&](const RunRequest& request) { tell_busy(request); });
      return RunEnd{ExitWith{busy.empty() ? worst : std::max(worst, m_raw.request.busy_code)}};
    }
    const Result<RunEnd> end = busy.size() == 1 ? one(busy.front()) : in_line(busy);
    return end && std::holds_alternative<ExitWith>(*end) ? RunEnd{ExitWith{std::max(worst, code_of(end))}} : end;
  }

 private:
  static RunRequest at_once(RunRequest request)
  {
    request.wait = Millis{0};
    return request;
  }

  Result<RunEnd> take(const RunRequest& request, const Log& log)
  {
    const BootClock clock;
    SystemRng rng;
    return freeze(request, {clock, rng, m_call.signals, log}, [&] {
      print(m_raw.json ? freeze_json(request.name(), record_of(request), left_of(request), false)
                       : frozen_now(request) + "\n");
    });
  }

  void tell_busy(const RunRequest& request) const
  {
    const Result<OpenedStore> opened = open_server(m_raw.take.server, m_call.environment);
    const auto state = opened ? opened->store->inspect(request.name(), opened->limit()) : opened.error();
    const bool is_held = state && state->held();
    Log(m_raw.take.verbosity())
        .notice(busy_text(printable(request.name().text()), request.wait.value_or(Millis{0}),
                          is_held ? std::optional(state->holders.front()) : std::nullopt,
                          is_held ? state->ttl : std::nullopt),
                {.event = "busy", .key = request.name().text(), .exit_code = request.busy_code});
  }

  [[noreturn]] void take_in_child(const RunRequest& request)
  {
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    const Result<RunEnd> end = take(request, Log(Verbosity::quiet));
    if (!end) {
      tell(request, end.error());
    } else if (exit_code_of(*end) == request.busy_code) {
      tell_busy(request);
    }
    static_cast<void>(finish_output());
    finish_log();
    ::_exit(code_of(end));
  }

  struct Child {
    pid_t pid;
    PidFd fd;
  };

  Result<RunEnd> in_line(const std::vector<RunRequest>& requests)
  {
    m_call.signals.block();
    std::string names =
        joined(requests, ", ", [](const RunRequest& request) { return printable(request.name().text()); });
    Log(m_raw.take.verbosity()).notice("waiting first in line for the jobs of " + names, {.event = "waiting"});
    std::vector<Child> children;
    children.reserve(requests.size());
    for (const RunRequest& request : requests) {
      const pid_t pid = ::fork();
      if (pid == 0) {
        take_in_child(request);
      }
      auto fd =
          pid > 0 ? PidFd::open(pid) : Result<PidFd>(Error{ErrorCode::os, std::generic_category().message(errno)});
      if (!fd) {
        signal_all(children, SIGTERM);
        [[maybe_unused]] const int code = await(children);
        return Error{ErrorCode::os,
                     "no process to wait for " + printable(request.name().text()) + ": " + fd.error().text};
      }
      children.push_back({.pid = pid, .fd = *std::move(fd)});
    }
    const int code = await(children);
    return m_signal ? RunEnd{DieOf{*m_signal}} : RunEnd{ExitWith{code}};
  }

  static void signal_all(const std::vector<Child>& children, int signal)
  {
    std::ranges::for_each(children, [&](const Child& child) { child.fd.signal(signal); });
  }

  // Until all have ended. Passes signals on. Returns the greatest exit code.
  int await(std::vector<Child>& children)
  {
    int worst = 0;
    while (!children.empty()) {
      std::vector<pollfd> waits(children.size() + 1);
      waits.back() = {.fd = m_call.signals.fd(), .events = POLLIN, .revents = 0};
      std::ranges::transform(children, waits.begin(), [](const Child& child) {
        return pollfd{.fd = child.fd.fd(), .events = POLLIN, .revents = 0};
      });
      ::poll(waits.data(), waits.size(), -1);
      if (const auto arrived = m_call.signals.take()) {
        m_signal = arrived->number;
        signal_all(children, arrived->number);
      }
      std::erase_if(children, [&](const Child& child) {
        int status = 0;
        const bool has_ended = ::waitpid(child.pid, &status, WNOHANG) == child.pid;
        worst = has_ended ? std::max(worst, exit_code_by(status)) : worst;
        return has_ended;
      });
    }
    return worst;
  }

  const RawFreeze& m_raw;
  const Call& m_call;
  std::optional<int> m_signal;  // that has arrived
};

// The time until --until.
Result<Millis> time_until(const std::string& text)
{
  const std::int64_t now_ms = wall_clock_ms();
  const auto time = read_time(text, TimeOfDay::next, now_ms);
  if (!time) {
    return usage("--until: '" + printable(text) + "' is no time (try --until 22:00, or --until '2026-11-26 22:00')");
  }
  const Millis left{*time - now_ms};
  if (left < fixed_lease_range.least) {
    return usage("--until: '" + printable(text) + "' is over (name a time to come)");
  }
  if (left > fixed_lease_range.most) {
    return usage("--until: '" + printable(text) + "' is too far away (" + show(fixed_lease_range.most) + " at most)");
  }
  return left;
}

// With the time of --until. A freeze that has not taken effect by then gives up.
Result<RawFreeze> resolve_end(const RawFreeze& raw)
{
  RawFreeze resolved = raw;
  if (!raw.until.empty()) {
    RETURN_IF_ERROR(assign(time_until(raw.until), resolved.lasts));
    resolved.ends_at = BootClock().now() + *resolved.lasts;
    resolved.request.wait = std::min(raw.request.wait.value_or(*resolved.lasts), *resolved.lasts);
  }
  return resolved;
}

Result<RunEnd> execute(const RawFreeze& given, const Call& call)
{
  ASSIGN_OR_RETURN(const auto resolved, resolve_end(given));
  const RawFreeze& raw = resolved;
  if (raw.take.keys.keys.empty() && call.operands.empty()) {
    return usage("no key: name the locks, or a pattern (try rlock freeze 'deploy:*')");
  }
  if (!raw.lasts || raw.reason.empty()) {
    return usage(
        raw.lasts
            ? "--reason is needed: those whose jobs do not start want to know why (try --reason 'moving the database')"
            : "--for or --until is needed: how long the freeze lasts (try --for 2h, or --until 22:00)");
  }
  RunRequest wanted = raw.request;
  wanted.ttl = *raw.lasts;
  RETURN_IF_ERROR(finish_request(raw.take, call.environment, wanted));
  const BootClock clock;
  SystemRng rng;
  const Log log(raw.take.verbosity());
  ServerLine line(clock, log);
  const WaitPolicy policy = wait_policy(wanted.wait, wanted.server.timeout, clock, wanted.wait_server);
  const auto requests =
      reach_server(policy, clock, rng, StopToken::never(), line, [&] { return requests_of(raw, wanted, call); });
  if (!requests) {
    return requests.error();
  }
  if (requests->empty()) {
    return ended(ExitCode::no);
  }
  Freezes freezes(raw, call);
  return requests->size() == 1 ? freezes.one(requests->front()) : freezes.several(*requests);
}

void add_freeze_options(OptionTable& options, RawFreeze& raw)
{
  options.add(freeze_rows, raw);
  add_key_options(options, raw.take.keys, some_keys_row);
  add_wait_options(options, raw.request);
  add_kind_options(options, raw.request, "");
  options.add(json_object_row, raw.json);
  options.add(quiet_row, raw.take);
  add_utc_option(options);
  add_server_options(options, raw.take.server);
}

}  // namespace

std::string frozen_now(const RunRequest& request)
{
  const std::int64_t now_ms = wall_clock_ms();
  return printable(request.name().text()) + " is " + freeze_text(record_of(request), left_of(request), now_ms);
}

const Verb freeze_verb{
    .name = "freeze",
    .summary = "let no new job start under locks for a while",
    .synopsis = "--for DUR|--until TIME --reason TEXT [OPTION...] KEY|GLOB...",
    .examples = {"rlock freeze stock --for 2h --reason 'moving the database'",
                 "rlock freeze stock --until 22:00 --reason 'moving the database'",
                 "rlock freeze 'deploy:*' --for 1h --reason 'release week' -w 10m",
                 "rlock freeze nightly --for 12h --reason 'no backup tonight' -n"},
    .own_exits = {{ExitCode::ok,
                   "no job starts under these locks any more, until the time is over or rlock thaw ends it"},
                  {ExitCode::no, "the server knows no lock that matches"},
                  {ExitCode::usage, "usage error, such as a missing --reason, or permits, which cannot be frozen"},
                  {ExitCode::busy, "a job still runs under one of the locks, which is not frozen; the others are"}},
    .common_exits = {ExitCode::unavailable, ExitCode::internal, ExitCode::os, ExitCode::refused, ExitCode::config},
    .add_options = bound<RawFreeze, add_freeze_options, execute>,
};

}  // namespace rlock::cli
