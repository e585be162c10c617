// SPDX-License-Identifier: Apache-2.0
// The databases that the tests know. A new one is one row.
#pragma once

#include <algorithm>
#include <array>
#include <memory>
#include <string_view>
#include "support/database_server.h"
#include "support/etcd_fixture.h"
#include "support/mariadb_fixture.h"
#include "support/mongo_fixture.h"
#include "support/postgres_fixture.h"
#include "support/s3_fixture.h"
#include "support/zookeeper_fixture.h"

namespace rlock::test {

struct DatabaseRow {
  std::string_view name;  // a value of RLOCK_TEST_ON
  bool (*is_installed)();
  // A server that does not wait for its disk. Skips the test case where it is not installed.
  std::unique_ptr<DatabaseServer> (*start)();
  bool by_default = true;      // the contract runs on it; false: only when RLOCK_TEST_ON names it
  bool has_presences = false;  // engine/presence.h
};

inline std::unique_ptr<DatabaseServer> start_postgres()
{
  return std::make_unique<PostgresServer>(std::vector<std::string>{"fsync=off"});
}

inline std::unique_ptr<DatabaseServer> start_mariadb()
{
  return std::make_unique<MariadbServer>(std::vector<std::string>{"innodb-flush-log-at-trx-commit=2"});
}

inline std::unique_ptr<DatabaseServer> start_mongo() { return std::make_unique<MongoServer>(); }

inline std::unique_ptr<DatabaseServer> start_etcd() { return std::make_unique<EtcdServer>(); }

inline std::unique_ptr<DatabaseServer> start_etcd3() { return std::make_unique<EtcdServer>(EtcdOptions{.nodes = 3}); }
inline std::unique_ptr<DatabaseServer> start_zookeeper() { return std::make_unique<ZookeeperServer>(); }
inline std::unique_ptr<DatabaseServer> start_zookeeper3()
{
  return std::make_unique<ZookeeperServer>(ZookeeperOptions{.nodes = 3});
}

inline std::unique_ptr<DatabaseServer> start_s3() { return std::make_unique<S3Server>(); }

inline constexpr std::array databases{
    DatabaseRow{"postgres", has_postgres, start_postgres},
    DatabaseRow{"mariadb", has_mariadb, start_mariadb},
    DatabaseRow{"mongo", has_mongo, start_mongo},
    DatabaseRow{"etcd", has_etcd, start_etcd, false, true},
    DatabaseRow{"etcd3", has_etcd, start_etcd3, false, true},
    DatabaseRow{"zookeeper", has_zookeeper, start_zookeeper, false, true},
    DatabaseRow{"zookeeper3", has_zookeeper, start_zookeeper3, false, true},
    DatabaseRow{"s3", has_s3, start_s3, false},
};

// A server of the row with this name.
inline std::unique_ptr<DatabaseServer> start_database(std::string_view name)
{
  return std::ranges::find(databases, name, &DatabaseRow::name)->start();
}

// One test case for each kind of database, whose body gets a `server`.
#define DATABASE_CASE(title) DATABASE_CASE_NAMED(DOCTEST_ANONYMOUS(database_case_), title)
#define DATABASE_CASE_NAMED(body, title)                                            \
  static void body(DatabaseServer& server);                                         \
  TEST_CASE("databases: postgres: " title) { body(*start_database("postgres")); }   \
  TEST_CASE("databases: mariadb: " title) { body(*start_database("mariadb")); }     \
  TEST_CASE("databases: mongo: " title) { body(*start_database("mongo")); }         \
  TEST_CASE("databases: etcd: " title) { body(*start_database("etcd")); }           \
  TEST_CASE("databases: zookeeper: " title) { body(*start_database("zookeeper")); } \
  static void body(DatabaseServer& server)

}  // namespace rlock::test
