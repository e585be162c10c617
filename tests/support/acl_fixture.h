// SPDX-License-Identifier: Apache-2.0
// A server with the user "shop", which has only the rights that a test gives.
#pragma once

#include "support/process.h"
#include "support/redis_fixture.h"

#include <cstdint>
#include <string>

namespace rlock::test {

// The words that `rlock acl` prints for the user "shop".
Words acl_line(const std::string& glob);

struct AclFixture {
  RedisServer server;

  // Gives the user "shop" these rights and no others. Skips the test case if the server has no ACL.
  void allow(Words line) const;

  // Runs rlock as that user. `all` begins with a verb.
  [[nodiscard]] Finished run(const Words& all) const;
  [[nodiscard]] Process start(const Words& all) const;

  [[nodiscard]] std::string url() const { return "unix://shop@" + server.socket_path().string(); }
  [[nodiscard]] std::int64_t exists(const std::string& key) const { return as_int(server.command({"EXISTS", key})); }
};

}  // namespace rlock::test

#define ACL_CASE(title) CASE_WITH(rlock::test::AclFixture, fixture, title)
