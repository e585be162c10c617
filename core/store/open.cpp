// SPDX-License-Identifier: Apache-2.0
#include "store/open.h"

#include "lock/abilities.h"
#include "net/url_parts.h"
#include "store/etcd/etcd_backend.h"
#include "store/mongo/mongo_backend.h"
#include "store/mongo/mongo_rights.h"
#include "store/mysql/mysql_backend.h"
#include "store/mysql/mysql_schema.h"
#include "store/postgres/postgres_backend.h"
#include "store/postgres/postgres_schema.h"
#include "store/quorum/quorum_store.h"
#include "store/record/record_host.h"
#include "store/redis/redis_store.h"
#include "store/redis/scan.h"
#include "store/redis_transport.h"
#include "store/zookeeper/zookeeper_backend.h"
#include "store/zookeeper/zookeeper_checks.h"

#include <algorithm>
#include <array>
#include <span>
#include <system_error>
#include <utility>

namespace rlock {
namespace {

Result<std::unique_ptr<LockStore>> open_redis(const ServerSpec& server, const Endpoint& endpoint, const Clock& clock,
                                              StopToken stop)
{
  Endpoint master = endpoint;
  master.refuses_replica = !endpoint.has_group();
  auto transport = open_transport(server, master, clock, stop);
  if (!transport) {
    return transport.error();
  }
  const auto check = endpoint.is_authenticated() ? RightsCheck::before_grant : RightsCheck::none;
  return std::unique_ptr<LockStore>(std::make_unique<RedisStore>(*std::move(transport), clock, check));
}

std::unique_ptr<LockStore> store_on(std::unique_ptr<record::Backend> backend, const Clock& clock)
{
  auto host = std::make_unique<record::RecordHost>(std::move(backend), clock, std::make_unique<SystemRng>());
  return std::make_unique<ScriptStore>(std::move(host), clock);
}

Result<std::unique_ptr<LockStore>> open_postgres(const ServerSpec&, const Endpoint& endpoint, const Clock& clock,
                                                 StopToken)
{
  return store_on(postgres::open_backend(postgres::connection_spec(endpoint), clock, std::make_unique<SystemRng>()),
                  clock);
}

Result<std::unique_ptr<LockStore>> open_mysql(const ServerSpec&, const Endpoint& endpoint, const Clock& clock,
                                              StopToken)
{
  return store_on(mysql::open_backend(mysql::connection_spec(endpoint), clock, std::make_unique<SystemRng>()), clock);
}

Result<std::unique_ptr<LockStore>> open_mongo(const ServerSpec&, const Endpoint& endpoint, const Clock& clock,
                                              StopToken)
{
  return store_on(mongo::open_backend(mongo::connection_spec(endpoint), clock, std::make_unique<SystemRng>()), clock);
}

Result<std::unique_ptr<LockStore>> open_etcd(const ServerSpec&, const Endpoint& endpoint, const Clock& clock, StopToken)
{
  return store_on(etcd::open_backend(etcd::connection_spec(endpoint), clock, std::make_unique<SystemRng>()), clock);
}

Result<std::unique_ptr<LockStore>> open_zookeeper(const ServerSpec&, const Endpoint& endpoint, const Clock& clock,
                                                  StopToken)
{
  return store_on(zookeeper::open_backend(zookeeper::connection_spec(endpoint), clock, std::make_unique<SystemRng>()),
                  clock);
}

Result<std::string> postgres_rights(const Endpoint& endpoint, std::string_view user, std::span<const std::string>)
{
  return postgres::rights_sql(postgres::tables_for(postgres::connection_spec(endpoint).table), user);
}

Result<std::string> mysql_rights(const Endpoint& endpoint, std::string_view user, std::span<const std::string>)
{
  return mysql::rights_sql(mysql::tables_for(mysql::connection_spec(endpoint).table), user);
}

Result<std::string> mongo_rights(const Endpoint& endpoint, std::string_view user, std::span<const std::string>)
{
  return mongo::rights_script(mongo::connection_spec(endpoint), user);
}

Result<std::string> etcd_rights(const Endpoint& endpoint, std::string_view user, std::span<const std::string> globs)
{
  return etcd::rights_lines(etcd::connection_spec(endpoint), user, globs);
}

Result<std::string> zookeeper_rights(const Endpoint& endpoint, std::string_view user, std::span<const std::string>)
{
  return zookeeper::rights_lines(zookeeper::connection_spec(endpoint), user);
}

// The first row also gets what no other row is for.
constexpr Engine postgres_engine{
    .scheme = postgres::scheme,
    .parse = postgres::parse_postgres_url,
    .open = open_postgres,
    .refuses_sync =
        "rlock cannot ask PostgreSQL which replicas have a commit (leave out --sync, and set "
        "synchronous_standby_names on the server)",
    .refuses_quorum =
        "a PostgreSQL database is no part of a quorum (give it alone; its hosts stand in one URL, "
        "postgresql://a,b/database)",
    .refuses_tls_files =
        "the URL of a PostgreSQL server names the files for TLS (try "
        "postgresql://host/database?sslrootcert=FILE, sslcert=, sslkey=)",
    .password_variable = "PGPASSWORD",
    .rights = postgres_rights,
};

constexpr Engine mysql_engine{
    .scheme = mysql::scheme,
    .parse = mysql::parse_mysql_url,
    .open = open_mysql,
    .refuses_sync =
        "rlock cannot ask MySQL which replicas have a commit (leave out --sync, and set up semi-synchronous "
        "replication)",
    .refuses_quorum =
        "a MySQL database is no part of a quorum (give it alone; its hosts stand in one URL, mysql://a,b/database)",
    .refuses_tls_files =
        "the URL of a MySQL server names the files for TLS (try mysql://host/database?ssl-ca=FILE, ssl-cert=, "
        "ssl-key=)",
    .password_variable = "MYSQL_PWD",
    .rights = mysql_rights,
};

constexpr Engine mongo_engine{
    .scheme = mongo::scheme,
    .parse = mongo::parse_mongo_url,
    .open = open_mongo,
    .refuses_sync = "every commit in MongoDB is on a majority of the replica set already (leave out --sync)",
    .refuses_quorum =
        "a MongoDB server is no part of a quorum (give it alone; the servers of a replica set stand in one URL, "
        "mongodb://a,b,c/database?replicaSet=NAME)",
    .refuses_tls_files =
        "the URL of a MongoDB server names the files for TLS (try "
        "mongodb://host/database?tls=true&tlsCAFile=FILE&tlsCertificateKeyFile=FILE)",
    .connections = 4,
    .rights = mongo_rights,
};

constexpr Engine etcd_engine{
    .scheme = etcd::scheme,
    .parse = etcd::parse_etcd_url,
    .open = open_etcd,
    .refuses_sync = "every write is on a majority of the members of etcd already (leave out --sync)",
    .refuses_quorum =
        "an etcd cluster is no part of a quorum: every write is on a majority already (give it alone; its members "
        "stand "
        "in one URL, etcd://a,b,c/prefix)",
    .refuses_tls_files = "etcd:// is without TLS (try etcds://)",
    .password_variable = "ETCDCTL_PASSWORD",
    .beside = {NativeFormat::etcd},
    .rights = etcd_rights,
};

constexpr Engine zookeeper_engine{
    .scheme = zookeeper::scheme,
    .parse = zookeeper::parse_zookeeper_url,
    .open = open_zookeeper,
    .refuses_sync = "every write to ZooKeeper is on a majority already (leave out --sync)",
    .refuses_quorum =
        "a ZooKeeper ensemble is no part of a quorum (give it alone; its members stand in one URL, "
        "zookeeper://a,b,c)",
    .refuses_tls_files = "the URL has no TLS (try zookeeper+tls://host:2281)",
    .beside = {NativeFormat::curator, NativeFormat::kazoo},
    .rights = zookeeper_rights,
};

constexpr Engine with_scheme(Engine engine, std::string_view scheme)
{
  engine.scheme = scheme;
  return engine;
}

constexpr std::array<Engine, 11> engines{
    Engine{.scheme = "redis", .parse = parse_url, .open = open_redis, .password_variable = "REDISCLI_AUTH"},
    postgres_engine,
    with_scheme(postgres_engine, "postgres"),
    mysql_engine,
    with_scheme(mysql_engine, mysql::mariadb_scheme),
    mongo_engine,
    with_scheme(mongo_engine, mongo::srv_scheme),
    etcd_engine,
    with_scheme(etcd_engine, etcd::tls_scheme),
    zookeeper_engine,
    with_scheme(zookeeper_engine, zookeeper::tls_scheme),
};

std::vector<Engine>& added_engines()
{
  static std::vector<Engine> rows;
  return rows;
}

const Engine& engine_for(std::string_view scheme)
{
  for (const std::span<const Engine> rows :
       {std::span<const Engine>(engines), std::span<const Engine>(added_engines())}) {
    const auto row = std::find_if(rows.begin(), rows.end(), [&](const Engine& each) { return each.scheme == scheme; });
    if (row != rows.end()) {
      return *row;
    }
  }
  return engines.front();
}

}  // namespace

const Engine& engine_of(const Endpoint& endpoint) { return engine_for(endpoint.scheme); }

namespace {

Result<std::unique_ptr<LockStore>> open_one(const ServerSpec& server, const Endpoint& endpoint, const Clock& clock,
                                            StopToken stop)
{
  return engine_of(endpoint).open(server, endpoint, clock, stop);
}

Result<std::unique_ptr<LockStore>> open_quorum(const ServerSpec& server, const Clock& clock, StopToken stop)
{
  std::vector<QuorumServer> servers;
  for (const Endpoint& endpoint : server.endpoints) {
    auto store = open_one(server, endpoint, clock, stop);
    if (!store) {
      return store.error();
    }
    if ((*store)->fence_raising() == nullptr) {
      return Error{ErrorCode::config, endpoint.shown() + " cannot be one of several servers (give it alone)"};
    }
    RestartMarker* const marker = server.restart_guard ? (*store)->restart_marker() : nullptr;
    servers.push_back({.shown = endpoint.shown(), .store = *std::move(store), .marker = nullptr});
    if (marker != nullptr) {
      servers.back().marker = [marker](const MarkerNews& news, const CallLimits& limit) {
        return marker->marker(news, limit);
      };
    }
  }
  const QuorumPolicy policy{.rule = server.quorum, .restart_guard = server.restart_guard_for};
  try {
    return std::unique_ptr<LockStore>(
        std::make_unique<QuorumStore>(std::move(servers), policy, clock, std::make_unique<SystemRng>()));
  } catch (const std::system_error& refused) {
    return Error{ErrorCode::os, "cannot start a thread for each of several servers: " + refused.code().message()};
  }
}

}  // namespace

std::string ServerSpec::shown() const
{
  std::string all;
  for (const Endpoint& endpoint : endpoints) {
    all += (all.empty() ? "" : " ") + endpoint.shown();
  }
  return all;
}

JobServer ServerSpec::for_job() const
{
  std::string urls;
  for (const Endpoint& endpoint : endpoints) {
    urls += (urls.empty() ? "" : " ") + endpoint.without_passwords();
  }
  return {.urls = std::move(urls), .password_file = password_file};
}

std::size_t ServerSpec::descriptors_of_lock() const
{
  constexpr std::size_t of_watchdog = 3;
  constexpr std::size_t of_sentinels = 2;
  const std::size_t of_thread = endpoints.size() > 1 ? 1 : 0;
  std::size_t all = of_watchdog + of_thread;
  for (const Endpoint& endpoint : endpoints) {
    const bool has_sentinels = endpoint.kind == Endpoint::Kind::sentinel;
    all += engine_of(endpoint).connections + (has_sentinels ? of_sentinels : 0) + of_thread;
  }
  return all;
}

void add_engine(const Engine& engine) { added_engines().push_back(engine); }

Result<Endpoint> parse_server(std::string_view url) { return engine_for(url.substr(0, url.find(':'))).parse(url); }

std::vector<std::string> url_beginnings()
{
  std::vector<std::string> all{
      "local:",           "unix://",          "rediss://", "redis+sentinel://", "rediss+sentinel://",
      "redis+cluster://", "rediss+cluster://"};
  for (const Engine& engine : engines) {
    all.push_back(std::string(engine.scheme) + "://");
  }
  return all;
}

bool may_have_password(std::string_view url)
{
  const Result<Endpoint> endpoint = parse_server(url);
  return endpoint ? !endpoint->password.empty() || !endpoint->sentinels.password.empty() : hides_password(url);
}

Result<std::unique_ptr<LockStore>> open_store(const ServerSpec& server, const Clock& clock, StopToken stop)
{
  return server.endpoints.size() > 1 ? open_quorum(server, clock, stop)
                                     : open_one(server, server.endpoints.front(), clock, stop);
}

Result<std::unique_ptr<Transport>> open_transport(const ServerSpec& server, const Endpoint& endpoint,
                                                  const Clock& clock, StopToken stop)
{
  return open_transport(endpoint,
                        {.timeout = server.timeout,
                         .runtime_directory = server.runtime_directory,
                         .name = server.local_name,
                         .idle = server.local_idle,
                         .any_lock = endpoint.is_private() ? any_lock_script() : "",
                         .starts = server.starts_local},
                        clock, stop);
}

}  // namespace rlock
