// SPDX-License-Identifier: Apache-2.0
// What the errors of MySQL and MariaDB mean to a lock client.
#include "stores/mysql/mysql_errors.h"

#include "support/test.h"

#include <set>

using namespace rlock::test;
using namespace rlock::mysql;

TEST_CASE("mysql errors: what passes is not final, and what stays is")
{
  struct Row {
    const char* why;
    unsigned number;
    ErrorCode code;
  };
  const Row rows[] = {
      {"wait_timeout has ended the connection (MySQL 8.0.24)", 4031, ErrorCode::unreachable},
      {"an administrator has ended the session", 3169, ErrorCode::unreachable},
      {"offline mode", 3032, ErrorCode::server_not_ready},
      {"max_statement_time (MariaDB)", 1969, ErrorCode::server_not_ready},
      {"max_execution_time (MySQL)", 3024, ErrorCode::server_not_ready},
      {"but a packet that is longer than max_allowed_packet is", 1153, ErrorCode::config},
      {"the account is locked (MySQL)", 3118, ErrorCode::refused},
      {"the account is locked (MariaDB)", 4151, ErrorCode::refused},
      {"the account is locked after too many wrong passwords (MySQL)", 3955, ErrorCode::refused},
      {"the account is blocked after too many wrong passwords (MariaDB)", 4150, ErrorCode::refused},
      {"the password has expired, in the session", 1820, ErrorCode::refused},
      {"the password has expired, at the login", 1862, ErrorCode::refused},
      {"the login is of a kind that the client does not know", 1251, ErrorCode::refused},
      {"the user must use TLS", 3159, ErrorCode::config},
      {"the storage engine fails", 1030, ErrorCode::server_not_ready},
  };
  for (const Row& row : rows) {
    CAPTURE(row.why);
    const auto found = std::ranges::find(numbers, row.number, &NumberRow::number);
    REQUIRE(found != numbers.end());
    CHECK(found->code == row.code);
  }
}

TEST_CASE("mysql errors: the server was there where it ended the connection itself")
{
  for (const unsigned number : {2006U, 2013U, 1927U, 3169U, 4031U}) {
    CAPTURE(number);
    CHECK(is_loss(number));
  }
  for (const unsigned number : {2002U, 2003U, 1040U, 1045U}) {
    CAPTURE(number);
    CHECK_FALSE(is_loss(number));
  }
}

TEST_CASE("mysql errors: the texts of read_only, which are four since MariaDB 12")
{
  CHECK(may_be_written("0"));
  CHECK(may_be_written("OFF"));
  for (const char* text : {"1", "ON", "NO_LOCK", "NO_LOCK_NO_ADMIN", ""}) {
    CAPTURE(std::string(text));
    CHECK_FALSE(may_be_written(text));
  }
}

TEST_CASE("mysql errors: a number has one row")
{
  std::set<unsigned> seen;
  for (const NumberRow& each : numbers) {
    CAPTURE(each.number);
    CHECK(seen.insert(each.number).second);
  }
}
