// SPDX-License-Identifier: Apache-2.0
// The exit codes of rlock that are not the job's own: numbers, names and meanings. Help and the manual are made from this
// table; a test compares the README with it.
//
// 64 to 78 are those of sysexits(3), 124 to 127 those of timeout(1) and the shells.
#pragma once

#include "base/result.h"

#include <array>
#include <string_view>

namespace rlock {

enum class ExitCode {
  ok = 0,
  no = 1,
  usage = 64,
  unavailable = 69,
  internal = 70,
  os = 71,
  busy = 75,
  refused = 77,
  config = 78,
  lost = 121,
  time_over = 124,
  not_executable = 126,
  not_found = 127,
};

struct ExitCodeRow {
  ExitCode code;
  std::string_view name;
  std::string_view meaning;
};

// In ascending order of the codes; every ExitCode once.
inline constexpr std::array exit_codes{
    ExitCodeRow{ExitCode::ok, "ok", "success"},
    ExitCodeRow{ExitCode::no, "no", "the answer is no: the lock is free, or another owner holds it"},
    ExitCodeRow{ExitCode::usage, "usage", "usage error, such as a bad URL in the arguments"},
    ExitCodeRow{ExitCode::unavailable, "unavailable", "server unreachable or unfit (loading, read-only)"},
    ExitCodeRow{ExitCode::internal, "internal", "internal error"},
    ExitCodeRow{ExitCode::os, "os", "the operating system refused (fork, memory, standard output)"},
    ExitCodeRow{ExitCode::busy, "busy", "the lock is busy (or -E N)"},
    ExitCodeRow{ExitCode::refused, "refused", "authentication or ACL refused"},
    ExitCodeRow{ExitCode::config, "config", "bad configuration, or the key holds no such lock"},
    ExitCodeRow{ExitCode::lost, "lost", "the lock was lost or taken by force while the job ran"},
    ExitCodeRow{ExitCode::time_over, "time_over",
                "the job was stopped because its time was over (--max-runtime, a fixed --lease)"},
    ExitCodeRow{ExitCode::not_executable, "not_executable", "the job cannot be executed"},
    ExitCodeRow{ExitCode::not_found, "not_found", "the job was not found"},
};

constexpr std::string_view meaning_of(ExitCode code)
{
  for (const ExitCodeRow& row : exit_codes) {
    if (row.code == code) {
      return row.meaning;
    }
  }
  return {};
}

constexpr ExitCode exit_code_of(ErrorCode code)
{
  switch (code) {
    case ErrorCode::usage: return ExitCode::usage;
    case ErrorCode::config: return ExitCode::config;
    case ErrorCode::unreachable:
    case ErrorCode::server_not_ready: return ExitCode::unavailable;
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
