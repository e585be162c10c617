// SPDX-License-Identifier: Apache-2.0
// What the errors of PostgreSQL mean to a lock client.
#include "stores/postgres/postgres_errors.h"

#include "support/test.h"

using namespace rlock::test;
using namespace rlock::postgres;

TEST_CASE("postgres errors: each state by what a lock client can do about it")
{
  struct Row {
    const char* why;
    std::string_view state;
    std::string_view file;
    ErrorCode code;
    Refusal refusal;
    bool ends;
  };
  const Row rows[] = {
      {"the row of a table that another transaction has locked", "55P03", "", ErrorCode::server_not_ready,
       Refusal::conflict, false},
      {"a transaction that failed was left open", "25P02", "", ErrorCode::unreachable, Refusal::other, true},
      {"a name that does not fit into the index", "54000", "nbtutils.c", ErrorCode::config, Refusal::other, false},
      {"the queue of NOTIFY is full", "54000", "async.c", ErrorCode::server_not_ready, Refusal::other, false},
      {"statement_timeout", "57014", "", ErrorCode::server_not_ready, Refusal::other, false},
      {"the server shuts down", "57P01", "", ErrorCode::server_not_ready, Refusal::other, true},
      {"read-only", "25006", "", ErrorCode::server_not_ready, Refusal::other, false},
      {"the protocol is violated", "08P01", "", ErrorCode::unreachable, Refusal::other, true},
      {"never heard of", "XX000", "", ErrorCode::unreachable, Refusal::other, false},
  };
  for (const Row& row : rows) {
    CAPTURE(row.why);
    const StateRow& meaning = meaning_of(row.state, row.file);
    CHECK(meaning.code == row.code);
    CHECK(meaning.refusal == row.refusal);
    CHECK(ends_connection(row.state) == row.ends);
  }
}

TEST_CASE("postgres errors: no row is hidden by one that stands before it")
{
  for (std::size_t i = 0; i < states.size(); ++i) {
    for (std::size_t before = 0; before < i; ++before) {
      CAPTURE(std::string(states[i].state));
      CHECK_FALSE((states[i].state.starts_with(states[before].state) && states[before].state != states[i].state));
    }
  }
}
