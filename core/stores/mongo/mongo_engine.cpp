// SPDX-License-Identifier: Apache-2.0
// All that the URLs of a MongoDB server mean.
#include "stores/engine.h"

#include "stores/mongo/mongo_backend.h"
#include "stores/mongo/mongo_rights.h"

namespace rlock::mongo {
namespace {

Result<std::string> rights(const Endpoint& endpoint, std::string_view user, std::span<const std::string>)
{
  return rights_script(connection_spec(endpoint), user);
}

constexpr std::array url_forms{
    UrlForm{"mongodb://[user[:password]@]host[:port][,host...]/database",
            "a MongoDB server or replica set, in any form that libmongoc reads, and ?collection=NAME, ?table=shedLock; "
            "mongodb+srv:// as well"}};
constexpr std::array<std::string_view, 1> rights_examples{
    "rlock acl -S mongodb://db1/app --user cron >role.js  # mongosh --file role.js"};

}  // namespace

extern constinit const Engine engine{
    .name = "mongo",
    .parse = parse_mongo_url,
    .open = open_records<connection_spec, open_backend>,
    .title = "MongoDB",
    .page = "mongodb",
    .url_forms = url_forms,
    .refuses_sync = "every commit in MongoDB is on a majority of the replica set already (leave out --sync)",
    .refuses_quorum =
        "a MongoDB server is no part of a quorum (give it alone; the servers of a replica set stand in one URL, "
        "mongodb://a,b,c/database?replicaSet=NAME)",
    .refuses_tls_files =
        "the URL of a MongoDB server names the files for TLS (try "
        "mongodb://host/database?tls=true&tlsCAFile=FILE&tlsCertificateKeyFile=FILE)",
    .rights = rights,
    .rights_examples = rights_examples,
};

}  // namespace rlock::mongo
