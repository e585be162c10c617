// SPDX-License-Identifier: Apache-2.0
#include "cli/verbs/watch_action.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "cli/output/output.h"
#include "cli/verbs/force_unlock.h"
#include "cli/verbs/freeze.h"
#include "run/environment.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <system_error>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace rlock::cli {
namespace {

constexpr const char* freeze_reason = "with z in rlock watch";

Result<RunEnd> force(const Question& confirmed, const std::string& user, const RawServer& server, const Call& call)
{
  ASSIGN_OR_RETURN(const auto opened, open_server(server, call.environment));
  return force_unlock(confirmed.about.name,
                      {.owner = confirmed.about.holders[confirmed.holder].owner, .confirmed = true, .by = user},
                      opened);
}

Result<RunEnd> freeze(const LockState& about, const RawServer& server, const Call& call)
{
  ASSIGN_OR_RETURN(auto spec, resolve_server(server, call.environment));
  RunRequest wanted;
  wanted.server = std::move(spec);
  wanted.environment = call.environment.all();
  wanted.ttl = freeze_time;
  ASSIGN_OR_RETURN(const auto request, freeze_of_lock(wanted, freeze_reason, about));
  print("the freeze of " + printable(about.name.text()) + " waits for its turn, while this screen is open\n");
  RETURN_IF_ERROR(finish_output());
  const BootClock clock;
  SystemRng rng;
  const Log log(Verbosity::quiet);
  return cli::freeze(request, {clock, rng, call.signals, log}, [&] { print(frozen_now(request) + "; z thaws it\n"); });
}

Result<RunEnd> thaw(const LockState& about, const std::string& user, const RawServer& server, const Call& call)
{
  ASSIGN_OR_RETURN(const auto opened, open_server(server, call.environment));
  ASSIGN_OR_RETURN(const auto thawed, cli::thaw(about, user, opened));
  print(printable(about.name.text()) + (thawed ? " is thawed\n" : " is not frozen any more\n"));
  return ended(thawed ? ExitCode::ok : ExitCode::no);
}

// `user`: of `rlock watch`.
Result<RunEnd> force_shown(const Question& confirmed, const std::string& user, const RawServer& server,
                           const Call& call)
{
  switch (confirmed.action) {
    case LockAction::force_unlock: return force(confirmed, user, server, call);
    case LockAction::freeze: return freeze(confirmed.about, server, call);
    case LockAction::cancel_freeze:  // the screen ends the process that waits
    case LockAction::thaw: break;
  }
  return thaw(confirmed.about, user, server, call);
}

// Besides the standard streams. The parent's connections and its terminal are not for this process, which may live for hours.
void keep_no_descriptor_but(int kept)
{
  constexpr int first = STDERR_FILENO + 1;
  close_range_if_any(first, kept - 1);
  close_range_if_any(std::max(first, kept + 1), no_last_descriptor);
  const Fd null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  ::dup2(null.get(), STDIN_FILENO);
}

[[noreturn]] void act_in_child(const Question& confirmed, const std::string& user, const RawServer& server,
                               const Call& call, int output)
{
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::dup2(output, STDOUT_FILENO);
  ::dup2(output, STDERR_FILENO);
  keep_no_descriptor_but(call.signals.fd());
  const Result<RunEnd> end = force_shown(confirmed, user, server, call);
  if (!end) {
    print(end.error().text + "\n");
  }
  static_cast<void>(finish_output());
  ::_exit(0);  // the screen belongs to the parent
}

}  // namespace

std::string obstacle_to(LockAction action, const LockState& state)
{
  if (action == LockAction::freeze) {
    const Result<RunRequest> request = freeze_of_lock({}, freeze_reason, state);
    return request ? "" : request.error().text;
  }
  const std::string key = printable(state.name.text());
  if (action == LockAction::force_unlock && freeze_of(state) != nullptr) {
    return key + " is frozen, and no job runs under it; z thaws it";
  }
  return action == LockAction::force_unlock && !state.held() ? key + " is free" : "";
}

Result<std::unique_ptr<WatchAction>> WatchAction::start(const Question& confirmed, const RawServer& server,
                                                        const Call& call)
{
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0) {
    return Error{ErrorCode::os, "no pipe: " + std::generic_category().message(errno)};
  }
  Fd read_end(ends[0]);
  const Fd write_end(ends[1]);
  const std::string user = own_identity(call.environment.all());
  const pid_t pid = ::fork();
  if (pid == 0) {
    act_in_child(confirmed, user, server, call, write_end.get());
  }
  if (pid < 0) {
    return Error{ErrorCode::os, "no process: " + std::generic_category().message(errno)};
  }
  return std::unique_ptr<WatchAction>(new WatchAction(pid, std::move(read_end)));
}

WatchAction::~WatchAction()
{
  ::kill(m_pid, SIGKILL);
  ::waitpid(m_pid, nullptr, 0);
}

WatchAction::Heard WatchAction::read()
{
  std::array<char, 4096> part{};
  Heard heard{.spoke = false, .ended = false};
  for (;;) {
    const ssize_t count = ::read(m_output.get(), part.data(), part.size());
    if (count <= 0) {
      heard.ended = count == 0 || (errno != EAGAIN && errno != EINTR);
      return heard;
    }
    heard.spoke = true;
    m_text.append(part.data(), static_cast<std::size_t>(count));
  }
}

std::string WatchAction::last_line() const
{
  const std::size_t end = m_text.find_last_not_of('\n');
  if (end == std::string::npos) {
    return {};
  }
  const std::size_t before = m_text.rfind('\n', end);
  const std::size_t begin = before == std::string::npos ? 0 : before + 1;
  return m_text.substr(begin, end + 1 - begin);
}

}  // namespace rlock::cli
