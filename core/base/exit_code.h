// SPDX-License-Identifier: Apache-2.0
// Every exit code of rlock that is not the job's own. The man page and the README list the same ones.
//
// 64 to 78 are those of sysexits(3), 124 to 127 those of timeout(1) and the shells.
#pragma once

#include "base/result.h"

namespace rlock {

enum class ExitCode {
  ok = 0,
  no = 1,  // the answer to a question was no: free, not ours, changed hands
  usage = 64,
  unavailable = 69,  // server unreachable or unfit, and the job was never started
  internal = 70,
  os = 71,
  busy = 75,
  refused = 77,
  config = 78,
  lost = 121,  // the lock was lost, or taken by force, while the job ran
  time_over = 124,
  not_executable = 126,
  not_found = 127,
};

constexpr ExitCode exit_code_of(ErrorCode fault)
{
  switch (fault) {
    case ErrorCode::usage: return ExitCode::usage;
    case ErrorCode::config: return ExitCode::config;
    case ErrorCode::unreachable:
    case ErrorCode::unfit: return ExitCode::unavailable;
    case ErrorCode::refused: return ExitCode::refused;
    case ErrorCode::os: return ExitCode::os;
    case ErrorCode::not_found: return ExitCode::not_found;
    case ErrorCode::not_executable: return ExitCode::not_executable;
    case ErrorCode::internal:
    case ErrorCode::interrupted: break;
  }
  return ExitCode::internal;
}

}  // namespace rlock
