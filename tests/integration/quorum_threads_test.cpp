// SPDX-License-Identifier: Apache-2.0
// A quorum uses a thread for each server. None of them runs when rlock forks or ends, because a child process has only
// one thread, and the memory of a thread is gone when main returns.
#include "support/integration.h"
#include "support/job_runner.h"
#include "support/paths.h"
#include "support/skip.h"
#include "support/three_servers.h"

using namespace rlock::test;

TEST_CASE("quorum: rlock has one thread when it forks, and when it ends")
{
  skip_with_address_sanitizer("nothing can be loaded before the address sanitizer");
#ifdef __SANITIZE_THREAD__
  skip("the thread sanitizer has a thread of its own");
#endif
  skip_on({TopologyKind::cluster}, "a cluster is no part of a quorum");
  const OneOfThreeHangs three;
  Process watched({"sleep", "60"});
  const Words calls[] = {{"run", "-k", "k", "--", "true"},
                         {"run", "-k", "a", "-k", "b", "--", "sleep", "0.4"},
                         {"run", "-k", "k", "--shards", "2", "--", "true"},
                         {"once", "-k", "once", "--for", "1m", "--", "true"},
                         {"flock", "f", "true"},
                         {"acquire", "-k", "w", "--pid", std::to_string(watched.pid())}};
  const auto dir = make_temp_dir("threads");
  for (const Words& call : calls) {
    CAPTURE(call[0] + " " + call[1]);
    const auto file = dir / call[2];
    const Finished run =
        run_rlock(three.words(call, {"--no-restart-guard"}),
                  {.env = {{"LD_PRELOAD", RLOCK_PRELOAD_THREAD_COUNT}, {"RLOCK_TEST_THREADS", file.string()}}});
    CHECK_MESSAGE(run.code == 0, run.err);
    const std::string seen = text_of(file);
    expect_has(seen, {"fork", "exit"});
    for (const char* several : {" 2", " 3", " 4", " 5"}) {
      CHECK_MESSAGE(!has(seen, several), seen);
    }
  }
}
