// SPDX-License-Identifier: Apache-2.0
// The tables in which the locks are, the statements on them, and the rights on them that a user needs. Pure functions.
#pragma once

#include <string>
#include <string_view>

namespace rlock::postgres {

// The names as they stand in SQL.
struct Tables {
  std::string lock = "rlock_lock";
  std::string event = "rlock_event";
  std::string listener = "rlock_listener";
  // The table of locks is that of ShedLock, which other programs write too. rlock has two columns beside ShedLock's four, and no
  // other column of its own.
  bool are_shared = false;
};

// `table`: the name of ShedLock's table, such as "shedlock" or "jobs.shedlock"; empty: rlock's own tables.
Tables tables_for(std::string_view table);

// Replaces {lock}, {event} and {listener}, and the words below, in a statement:
//   {alive}    whether the row l of the table of listeners is that of a living client
//   {now}      the time of the statement, as ShedLock stores times
//   {version}  the column with the version
//   {record}   the column with the record
//   {schema}   the name of the schema of the tables, as a text
std::string on_tables(std::string_view sql, const Tables& tables);

// $1 the name → time in microseconds, version, record, channels; for a shared table also the end in microseconds, the holder, and
// the type of the end.
std::string read_sql(const Tables& tables, const std::string& more_columns = "");

// $1 names, an array → the same for each of them, and its name as the last column.
std::string read_each_sql(const Tables& tables);

// Two more columns of the read: the rights that this user lacks, as "update on rlock_lock, delete on rlock_event", and its name.
std::string rights_columns_sql(const Tables& tables);

// Whether the type of the end is one that ShedLock's documentation names, and does not round an end to another millisecond.
bool keeps_milliseconds(std::string_view type);

// Statements that begin with a change of the table of locks, whose row is called w. $1 name, $2 new version, $3 record, $4 holder,
// $5 end, then for rlock's own table $6 the time to forget. An update also has the old version, and for a shared table the end and
// the holder that were read.
std::string insert_sql(const Tables& tables);
std::string update_sql(const Tables& tables);

// The names of held locks.
std::string held_sql(const Tables& tables);

// Deletes rows that are of no use any more. Those of a shared table stay: ShedLock counts on the rows that it has made.
std::string forget_sql(const Tables& tables);

inline constexpr std::string_view would_be_temporary = "would be temporary, so that no other client sees them";
inline constexpr std::string_view other_schema = "let search_path, or table=, begin with another schema than pg_temp";

// Whether the tables that are missing would be made in a schema that other sessions do not see.
std::string makes_temporary_sql(const Tables& tables);

// Makes the tables where they are missing, and for a shared table the columns of rlock.
std::string create_sql(const Tables& tables);

// `user`: a name as it stands in SQL, without quotes.
std::string grant_sql(const Tables& tables, std::string_view user);

// What an administrator runs, so that `user` needs no right to create tables.
std::string rights_sql(const Tables& tables, std::string_view user);

}  // namespace rlock::postgres
