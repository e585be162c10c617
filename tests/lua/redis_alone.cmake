# SPDX-License-Identifier: Apache-2.0
# The cases of tests/lua that need what only Redis has, as patterns of doctest. All others also run on the record engine.
set(redis_alone
  # SCRIPT LOAD, and what needs no server
  "embedding:*"
  # a memory that is full: a store that has no room refuses the commit as a whole
  "*full memory*"
  "kinds: what is held can be renewed*"
  # rights on single keys and commands: the engine's store has rights on its tables
  "*missing right*"
  "*right that is missing*"
  "a nested hold: what was refused or never was*"
  # scripts of Redisson, which no JVM runs on a record
  "* beside Redisson:*"
  "foreign data: a read-write lock is joined by*"
  "foreign data: a read-write lock of which only dead*"
  "queue script: the first waiter is told about a foreign holder*"
  # scripts of foreign clients of string locks, and types that the engine does not have
  "string: on the wire"
  "string: a foreign holder is waited for*"
  "string: what is no string is left alone")
string(REPLACE ";" "," redis_alone "${redis_alone}")
