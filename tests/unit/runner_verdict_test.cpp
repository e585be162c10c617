// SPDX-License-Identifier: Apache-2.0
#include "runner/verdict.h"

#include <doctest/doctest.h>

#include <csignal>
#include <string>

using namespace rlock;

namespace {

constexpr int exited(int code) { return code << 8; }

std::string shown(const RunEnd& end)
{
  if (const auto* code = std::get_if<ExitWith>(&end)) {
    return std::to_string(code->code);
  }
  return "signal " + std::to_string(std::get<DieOf>(end).signal);
}

Ended job(int status, Stopped why = Stopped::none)
{
  return {.wait_status = status, .why = why, .killed = false};
}

}  // namespace

TEST_CASE("ending: losing counts most, then what we did, then the job's own end")
{
  const NotOurs gone{.what = "expired or deleted", .forced = std::nullopt};
  struct Row { const char* why; Aftermath after; const char* expect; const char* says; };
  const Row rows[] = {
      {"all well", {.job = job(exited(0)), .verdict = {}, .release = {}}, "0", ""},
      {"the job's code", {.job = job(exited(7)), .verdict = {}, .release = {}}, "7", ""},
      {"the job's signal", {.job = job(SIGTERM), .verdict = {}, .release = {}}, "signal 15", ""},
      {"a core dump is the same death", {.job = job(SIGSEGV | 0x80), .verdict = {}, .release = {}},
       "signal 11", ""},
      {"found gone at release", {.job = job(exited(0)), .verdict = {}, .release = gone}, "121",
       "expired or deleted"},
      {"proven gone", {.job = job(SIGTERM, Stopped::order), .verdict = Gone{"now held by x"}, .release = gone},
       "121", "now held by x"},
      {"forced", {.job = job(SIGTERM, Stopped::order), .verdict = Wanted{"alice@web1"}, .release = {}}, "121",
       "force-unlocked by alice@web1"},
      {"forced, and never heard of it",
       {.job = job(exited(0)),
        .verdict = {},
        .release = NotOurs{.what = "expired or deleted", .forced = ForceRequest{"bob@db1"}}},
       "121", "bob@db1"},
      {"not renewed in time",
       {.job = job(SIGTERM, Stopped::lifeline), .verdict = Unsure{"connection refused"}, .release = {}}, "121",
       "connection refused"},
      {"a job that ends well at the last moment of a lost lease",
       {.job = job(exited(0)), .verdict = Unsure{"silence"}, .release = {}}, "121", "silence"},
      {"a fixed lease is over",
       {.job = job(SIGTERM, Stopped::lifeline), .verdict = {}, .release = {}, .automatic = false}, "124",
       "lease"},
      {"--max-runtime", {.job = job(exited(0), Stopped::max_runtime), .verdict = {}, .release = {}}, "124",
       "--max-runtime"},
      {"the guardian was killed", {.job = {}, .verdict = {}, .release = {}}, "71", "guardian"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.why);
    const Ending end = ending(row.after, "stock");
    CHECK(shown(end.end) == row.expect);
    CHECK((end.line.empty() ? std::string(row.says).empty()
                            : end.line.find(row.says) != std::string::npos));
  }
}
