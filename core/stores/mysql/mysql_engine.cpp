// SPDX-License-Identifier: Apache-2.0
// All that the URLs of a MySQL or MariaDB server mean.
#include "stores/engine.h"

#include "stores/mysql/mysql_backend.h"
#include "stores/mysql/mysql_schema.h"

namespace rlock::mysql {
namespace {

Result<std::string> rights(const Endpoint& endpoint, std::string_view user, std::span<const std::string>)
{
  return rights_sql(tables_for(connection_spec(endpoint).table), user);
}

constexpr std::array url_forms{
    UrlForm{"mysql://[user[:password]@]host[:port]/database",
            "a MySQL or MariaDB database, also mariadb://; ?socket=PATH, ssl-mode=, ssl-ca=, create=no, "
            "table=shedlock"}};
constexpr std::array<std::string_view, 1> rights_examples{"rlock acl -S mysql:///app --user deploy | mysql app"};

}  // namespace

extern constinit const Engine engine{
    .name = "mysql",
    .parse = parse_mysql_url,
    .open = open_records<connection_spec, open_backend>,
    .title = "MySQL",
    .page = "mysql",
    .url_forms = url_forms,
    .refuses_sync =
        "rlock cannot ask MySQL which replicas have a commit (leave out --sync, and set up semi-synchronous "
        "replication)",
    .refuses_quorum =
        "a MySQL database is no part of a quorum (give it alone; its hosts stand in one URL, mysql://a,b/database)",
    .refuses_tls_files =
        "the URL of a MySQL server names the files for TLS (try mysql://host/database?ssl-ca=FILE, ssl-cert=, "
        "ssl-key=)",
    .password_variable = "MYSQL_PWD",
    .rights = rights,
    .rights_examples = rights_examples,
};

}  // namespace rlock::mysql
