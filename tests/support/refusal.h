// SPDX-License-Identifier: Apache-2.0
// Whether a server lets a job run, and what rlock says where it does not.
#pragma once

#include "support/clean_text.h"
#include "support/process.h"
#include "support/test.h"

#include <string>

namespace rlock::test {

// `rlock run` with a job that says that it ran.
inline Finished run_job_at(const std::string& url, const Words& options = {}, const std::string& key = "k")
{
  return run_at(url, with_job(joined({"run", "-k", key}, options), {"echo", "ran"}));
}

// No job has run, and one line says why.
inline void check_refused(const Finished& end, int code, const std::string& says)
{
  CAPTURE(says);
  CHECK_MESSAGE(end.code == code, end.err);
  CHECK(end.out == "");
  CHECK_MESSAGE(has(end.err, says), end.err);
  CHECK_MESSAGE(count(end.err, "\n") == 1, end.err);
  CHECK_MESSAGE(is_clean(end.err), end.err);
}
inline void check_refused(const std::string& url, int code, const std::string& says, const Words& options = {},
                          const std::string& key = "k")
{
  check_refused(run_job_at(url, options, key), code, says);
}

inline void check_granted(const std::string& url) { expect_end(run_job_at(url), 0, {out_is("ran\n")}); }

}  // namespace rlock::test
