// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"
#include "base/system.h"
#include "cli/options/passwords.h"
#include "cli/output/output.h"
#include "cli/verbs/dispatch.h"
#include "process/signals.h"

#include <exception>
#include <system_error>

#include <fcntl.h>
#include <unistd.h>

namespace rlock::cli {
namespace {

// If 0, 1 or 2 were closed, the next descriptor that rlock opens would get that number, and messages would go to the server.
// The descriptors that are opened here fail like closed ones, and are closed again for the job.
void occupy_standard_descriptors()
{
  for (const int fd : {0, 1, 2}) {
    if (::fcntl(fd, F_GETFD) == -1) {
      [[maybe_unused]] const int same = ::open("/dev/null", (fd == 0 ? O_WRONLY : O_RDONLY) | O_CLOEXEC);
    }
  }
}

RunEnd failed(const Error& error)
{
  const ExitCode code = exit_code_of(error.code);
  Log(Verbosity::normal).error(error.text, {.event = "failed", .exit_code = static_cast<int>(code)});
  return ended(code);
}

RunEnd end_of(std::span<char* const> argv)
{
  Signals signals;  // first, while there is one thread: it notes the inherited signals
  const std::vector<std::string> words(argv.begin(), argv.end());
  wipe_passwords(argv);
  set_program_name(program_of(words));

  const Result<RunEnd> end = dispatch(args_of(words), Environment::current(), signals);
  const Result<Done> printed = finish_output();
  if (!end) {
    return failed(end.error());
  }
  return printed ? *end : failed(printed.error());
}

}  // namespace
}  // namespace rlock::cli

int main(int argc, char** argv)
{
  using namespace rlock;
  RunEnd end = cli::ended(ExitCode::internal);
  cli::occupy_standard_descriptors();
  keep_title(argv);
  try {
    end = cli::end_of({argv, static_cast<std::size_t>(argc)});
  } catch (const std::system_error& refused) {  // no descriptor or thread is left
    end = cli::failed({ErrorCode::os, refused.what()});
  } catch (const std::exception& error) {
    end = cli::failed({ErrorCode::internal, std::string("internal error: ") + error.what()});
  }
  finish_log();
  if (const auto* death = std::get_if<DieOf>(&end)) {
    die_of(death->signal);
  }
  ::_exit(std::get<ExitWith>(end).code);  // all output is written; destructors would only cost time
}
