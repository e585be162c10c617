// SPDX-License-Identifier: Apache-2.0
#include "stores/mongo/mongo_url.h"

#include "stores/mongo/mongo_rights.h"

#include "support/skip.h"
#include "support/test.h"

using namespace rlock::test;
using namespace rlock::mongo;

namespace {

Result<Endpoint> parsed(const std::string& url)
{
  auto endpoint = parse_mongo_url(url);
  if (!endpoint && endpoint.error().code == ErrorCode::config) {
    skip(endpoint.error().text);  // there is no libmongoc
  }
  return endpoint;
}

ConnectionSpec spec_of(const std::string& url)
{
  const auto endpoint = parsed(url);
  REQUIRE_MESSAGE(endpoint, endpoint.error().text);
  return connection_spec(*endpoint);
}

}  // namespace

TEST_CASE("mongo url: the database is in the path, and the collection in a parameter of rlock")
{
  const ConnectionSpec plain = spec_of("mongodb://db.example");
  CHECK(plain.database == "rlock");
  CHECK(plain.collection == "rlock_lock");
  const ConnectionSpec named = spec_of("mongodb://a,b:27018/app?replicaSet=rs0&collection=my%2Dlocks&authSource=admin");
  CHECK(named.database == "app");
  CHECK(named.collection == "my-locks");
  CHECK(named.url == "mongodb://a,b:27018/app?replicaSet=rs0&authSource=admin");
}

TEST_CASE("mongo url: the collection of ShedLock")
{
  CHECK_FALSE(spec_of("mongodb://a/app?collection=shedLock").is_shared);
  const ConnectionSpec shared = spec_of("mongodb://a/app?table=shed%4Cock");
  CHECK(shared.is_shared);
  CHECK(shared.collection == "shedLock");
  CHECK(shared.url == "mongodb://a/app");
  for (const char* url :
       {"mongodb://a/app?table=", "mongodb://a/app?table=a&collection=b", "mongodb://a/app?table=a$"}) {
    CAPTURE(std::string(url));
    CHECK(parsed(url).error().code == ErrorCode::usage);
  }
}

TEST_CASE("mongo url: the parameters of MongoDB's connection strings are taken")
{
  for (const char* parameter : {"appName=x",
                                "authMechanism=SCRAM-SHA-256",
                                "authMechanismProperties=SERVICE_NAME:x",
                                "authSource=admin",
                                "compressors=zlib",
                                "connectTimeoutMS=1000",
                                "directConnection=true",
                                "heartbeatFrequencyMS=10000",
                                "journal=true",
                                "localThresholdMS=15",
                                "maxStalenessSeconds=-1",
                                "readConcernLevel=majority",
                                "readPreference=primary",
                                "readPreference=secondary&readPreferenceTags=dc:ny",
                                "replicaSet=rs0",
                                "retryReads=false",
                                "retryWrites=true",
                                "serverSelectionTimeoutMS=1000",
                                "serverSelectionTryOnce=true",
                                "socketTimeoutMS=1000",
                                "ssl=true",
                                "tls=true",
                                "tlsAllowInvalidCertificates=true",
                                "tlsAllowInvalidHostnames=true",
                                "tlsCAFile=ca.pem",
                                "tlsCertificateKeyFile=me.pem",
                                "tlsInsecure=true",
                                "w=majority",
                                "wTimeoutMS=1000",
                                "zlibCompressionLevel=1"}) {
    const auto endpoint = parsed("mongodb://u:p@db/app?" + std::string(parameter));
    CHECK_MESSAGE(endpoint, std::string(parameter));
  }
}

TEST_CASE("mongo url: which of them lead to another host, and which use TLS")
{
  for (const char* url :
       {"mongodb://localhost", "mongodb://127.0.0.1:27018/app", "mongodb://[::1]/app",
        "mongodb://%2Frun%2Fmongodb%2Fa.sock/app", "mongodb://localhost,127.0.0.1/app?replicaSet=a"}) {
    CAPTURE(std::string(url));
    CHECK(spec_of(url).is_this_host);
    CHECK_FALSE(spec_of(url).uses_tls);
  }
  for (const char* url : {"mongodb://db.example/app?tls=true", "mongodb://localhost,db.example/app?ssl=true",
                          "mongodb+srv://db.example.org/app", "mongodb://127.0.0.1.example/app?tlsCAFile=ca.pem"}) {
    CAPTURE(std::string(url));
    CHECK_FALSE(spec_of(url).is_this_host);
    CHECK(spec_of(url).uses_tls);
  }
}

TEST_CASE("mongo url: a message shows no user and no password, and the job gets the user without the password")
{
  const auto endpoint = parsed("mongodb://bob%40x:hun%3Ater2@db/app?collection=c");
  REQUIRE(endpoint);
  CHECK(endpoint->shown() == "mongodb://db/app?collection=c");
  CHECK(endpoint->without_passwords() == "mongodb://bob%40x@db/app?collection=c");
  const ConnectionSpec spec = connection_spec(*endpoint);
  CHECK(spec.url == "mongodb://db/app");
  CHECK(spec.user == "bob@x");
  CHECK(spec.password == "hun:ter2");
}

TEST_CASE("mongo url: what cannot be meant is refused with a reason, which shows no password")
{
  struct Row {
    const char* url;
    const char* why;
  };
  for (const Row& row :
       {Row{"mongodb:db", "it has no //"}, Row{"mongodb://u:hunter2@db/?colour=blue", "no parameter colour"},
        Row{"mongodb://u:hunter2%zz@db/", "two hexadecimal digits"},
        Row{"mongodb://u:hunter2@db/app?collection=", "names no collection"},
        Row{"mongodb://u:hunter2@db/app?collection=system.users", "names no collection"},
        Row{"mongodb://u:hunter2@db/app?tlsCertificateKeyFilePassword=hunter2", "passphrase"},
        Row{"mongodb://u:hunter2@db/?loadBalanced=true", "mongos"}, Row{"mongodb://u:hunter2@/app", "invalid"},
        Row{"mongodb://u:hunter2@db:0/app", "invalid"}}) {
    CAPTURE(row.url);
    const auto refused = parsed(row.url);
    REQUIRE(!refused);
    CHECK(refused.error().code == ErrorCode::usage);
    CHECK_MESSAGE(has(refused.error().text, row.why), refused.error().text);
    CHECK_MESSAGE(!has(refused.error().text, "hunter2"), refused.error().text);
  }
}

TEST_CASE("mongo acl: the script chooses the database of the URL, whichever mongosh is connected to")
{
  const ConnectionSpec spec{.database = "my \"app\"", .collection = "rlock_lock"};
  const std::string script = rights_script(spec, "deploy");
  CHECK_MESSAGE(script.starts_with("db = db.getSiblingDB(\"my \\\"app\\\"\")\ndb.createCollection("), script);
  CHECK(rights_script({.database = "app", .collection = "shedLock", .is_shared = true}, "deploy")
            .starts_with("db = db.getSiblingDB(\"app\")\ndb.createRole("));
}
