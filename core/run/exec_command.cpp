// SPDX-License-Identifier: Apache-2.0
#include "run/exec_command.h"

#include "base/text.h"
#include "process/command.h"
#include "run/environment.h"

#include <cerrno>
#include <system_error>

#include <unistd.h>

namespace rlock {

Error exec_command(const std::vector<std::string>& argv, const std::vector<std::string>& environment,
                   const Signals& signals)
{
  const Result<std::string> path = find_command(argv.front(), find_variable(environment, "PATH"));
  if (!path) {
    return path.error();
  }
  std::vector<char*> words;
  words.reserve(argv.size() + 1);
  for (const std::string& word : argv) {
    words.push_back(const_cast<char*>(word.c_str()));  // execv takes char* but does not write
  }
  words.push_back(nullptr);
  signals.restore();
  ::execv(path->c_str(), words.data());
  return {ErrorCode::not_executable,
          "cannot execute " + printable(argv.front()) + ": " + std::generic_category().message(errno)};
}

}  // namespace rlock
