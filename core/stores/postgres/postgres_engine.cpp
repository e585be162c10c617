// SPDX-License-Identifier: Apache-2.0
// All that the URLs of a PostgreSQL server mean.
#include "stores/engine.h"

#include "stores/postgres/postgres_backend.h"
#include "stores/postgres/postgres_schema.h"

namespace rlock::postgres {
namespace {

Result<std::string> rights(const Endpoint& endpoint, std::string_view user, std::span<const std::string>)
{
  return rights_sql(tables_for(connection_spec(endpoint).table), user);
}

constexpr std::array url_forms{
    UrlForm{"postgresql://[user[:password]@]host[:port]/database",
            "a PostgreSQL database, in any form that libpq reads, and ?create=no, ?table=shedlock"}};
constexpr std::array<std::string_view, 1> rights_examples{"rlock acl -S postgresql:///app --user deploy | psql app"};

}  // namespace

extern constinit const Engine engine{
    .name = "postgres",
    .parse = parse_postgres_url,
    .open = open_records<connection_spec, open_backend>,
    .title = "PostgreSQL",
    .page = "postgresql",
    .url_forms = url_forms,
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
    .rights = rights,
    .rights_examples = rights_examples,
};

}  // namespace rlock::postgres
