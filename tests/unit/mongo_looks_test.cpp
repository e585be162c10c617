// SPDX-License-Identifier: Apache-2.0
#include "stores/mongo/mongo_pauses.h"
#include "support/test.h"

using namespace rlock;
using namespace rlock::mongo;
using namespace std::chrono_literals;

TEST_CASE("mongo looks: those in front look often, those far back do not, and all look less often while nothing comes")
{
  struct Row {
    const char* name;
    ListenerPlace place;
    Millis quiet;
    Millis pause;
    Millis look_time = 1ms;
  };
  const Row rows[]{
      {"the first one after a message", {1, false}, 0ms, 25ms},
      {"the first one soon after it", {1, false}, 400ms, 50ms},
      {"the first one later", {1, false}, 30s, 100ms},
      {"the first one after a minute", {1, false}, 10min, 100ms},
      {"the second one after a minute", {2, false}, 10min, 100ms},
      {"a holder for which no client waits", {1, true}, 30s, 100ms},
      {"the same after a minute", {1, true}, 10min, 250ms},
      {"the third one after a minute", {3, false}, 10min, 250ms},
      {"one further back after a message", {8, false}, 0ms, 200ms},
      {"one further back later", {8, false}, 30s, 400ms},
      {"one far back after a message", {40, false}, 0ms, 500ms},
      {"one far back later", {1000, false}, 30s, 1000ms},
      {"the first one, of a slow server", {1, false}, 0ms, 200ms, 200ms},
      {"the third one, of a slow server", {3, false}, 0ms, 600ms, 200ms},
      {"one far back, of a slow server", {9, false}, 0ms, 800ms, 100ms},
      {"one that must find a hand-over in time", {9, false}, 0ms, 1000ms, 900ms},
  };
  for (const Row& row : rows) {
    CAPTURE(std::string(row.name));
    CHECK(pause_between_looks(row.quiet, row.place, row.look_time).count() == row.pause.count());
  }
}
