// SPDX-License-Identifier: Apache-2.0
#include "runner/environment.h"

#include <doctest/doctest.h>

using namespace rlock;

TEST_CASE("job environment: the lock, its ancestors, and no password")
{
  Endpoint server;
  server.user = "u";
  server.password = "secret";
  const LockName name = *LockName::parse("b");
  const Owner owner = Owner::of("o2:2");
  const auto environment = job_environment(
      {"PATH=/bin", "RLOCK_KEY=a", "RLOCK_FENCE=41", "RLOCK_HELD=o1:1 a", "RLOCK_KEYS=mine"},
      {.name = name, .owner = owner, .lease = Millis{30'000}, .server = server});

  CHECK(environment_value(environment, "PATH") == "/bin");
  CHECK(environment_value(environment, "RLOCK_KEYS") == "mine");
  CHECK(environment_value(environment, "RLOCK_KEY") == "b");
  CHECK(environment_value(environment, "RLOCK_TOKEN") == "o2:2");
  CHECK(environment_value(environment, "RLOCK_FENCE") == "");
  CHECK(environment_value(environment, "RLOCK_LEASE_MS") == "30000");
  CHECK(environment_value(environment, "RLOCK_HELD") == "o1:1 a\no2:2 b");
  CHECK(environment_value(environment, "RLOCK_SERVER") == "redis://127.0.0.1:6379");
  for (const std::string& entry : environment) {
    CHECK(entry.find("secret") == std::string::npos);
  }
}
