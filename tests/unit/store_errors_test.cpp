// SPDX-License-Identifier: Apache-2.0
// An error that rlock does not know, of each store whose errors are a table.
#include "base/exit_code.h"
#include "redis/codec.h"
#include "stores/mysql/mysql_errors.h"
#include "stores/postgres/postgres_errors.h"
#include "stores/zookeeper/zookeeper_client.h"
#include "support/test.h"

using namespace rlock::test;

TEST_CASE("store errors: an unknown one is an unfit server, never an internal error")
{
  struct Row {
    const char* store;
    ErrorCode code;
  };
  const Row rows[] = {
      {"Redis", error_from_reply("NEWCODE of a later version", "redis://db1").code},
      {"a script of Redis", error_from_reply("ERR Error running script: @user_script: 3: NEWCODE", "redis://db1").code},
      {"PostgreSQL", rlock::postgres::meaning_of("XX000", "").code},
      {"PostgreSQL without SQLSTATE", rlock::postgres::meaning_of("", "").code},
      {"MySQL", rlock::mysql::meaning_of(9999).code},
      {"its client library", rlock::mysql::meaning_of(2999).code},
      {"ZooKeeper", rlock::zookeeper::error_of(static_cast<rlock::zookeeper::Code>(-999), "zookeeper://z1").code},
  };
  for (const Row& row : rows) {
    CAPTURE(row.store);
    CHECK(exit_code_of(row.code) == ExitCode::unavailable);
  }
  CHECK(
      error_from_reply("NOAUTH HELLO must be called with the client already authenticated", "redis://db1")
          .text.starts_with("redis://db1 says: NOAUTH Authentication required (give the password by --password-file"));
  CHECK(error_from_reply("NEWCODE of a later version", "redis://db1").text ==
        "redis://db1 says: NEWCODE of a later version");
}
