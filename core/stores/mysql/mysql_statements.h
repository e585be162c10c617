// SPDX-License-Identifier: Apache-2.0
// The statements on the tables of the locks, for Connection::ask. Pure functions. Private to stores/mysql.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include "engine/record_backend.h"
#include "stores/mysql/mysql_schema.h"

namespace rlock::mysql {

// The rows of the answer: one with the time and the record, and one for each listener, with its channel alone.
// Whether the server is read-only stands there because a user may write nevertheless: a server that is no longer the primary one must
// renew nothing.
enum ReadColumn : std::size_t {
  read_time,
  read_version,
  read_record,
  read_channel,
  read_read_only,
  read_name,
  read_end,
  read_holder
};
std::string read_sql(std::string_view name, const Tables& tables);

// The same of several locks, in an answer each for: the time, with read_read_only; the states, with the name in place of the time;
// the names and channels of the listeners; where `with_logs`, the names and entries of the event logs.
enum EachSet : std::uint8_t { each_time, each_state, each_listener, each_entry };
std::string read_each_sql(std::span<const std::string_view> names, bool with_logs, const Tables& tables);

// Statements that change nothing and answer with no row, and of which one is refused where the user lacks a right.
std::string try_rights_sql(const Tables& tables);

// All in one packet, so that a client that is stopped holds no row of a transaction that waits for it. Answers with "1" if `next` has
// been written, and, where there are messages, with the listeners to wake.
std::string commit_sql(std::string_view name, const record::Version& version, const std::string& next,
                       const record::Change& change, const Tables& tables);

// Gives the lock this version, and makes it where there is none. Leaves its face as it is.
std::string touch_sql(std::string_view name, const std::string& version, const Tables& tables);

std::string held_sql(const Tables& tables);
std::string erase_sql(std::string_view name);

// Deletes some rows that are of no use any more.
std::string forget_sql(const Tables& tables);

}  // namespace rlock::mysql
