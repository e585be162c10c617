// SPDX-License-Identifier: Apache-2.0
#include "stores/postgres/postgres_url.h"

#include "support/skip.h"
#include "support/test.h"

using namespace rlock::test;
using namespace rlock::postgres;

namespace {

bool verifies(const std::string& url)
{
  const auto endpoint = parse_postgres_url(url);
  if (!endpoint && endpoint.error().code == ErrorCode::config) {
    skip(endpoint.error().text);  // there is no libpq
  }
  REQUIRE_MESSAGE(endpoint, endpoint.error().text);
  return connection_spec(*endpoint).verifies_tls;
}

}  // namespace

TEST_CASE("postgres url: a server that may be another host must show a certificate, unless the URL says otherwise")
{
  for (const char* url : {"postgresql://db.example/app", "postgresql:///app?host=db.example",
                          "postgresql:///app?hostaddr=10.0.0.1", "postgresql://localhost,db.example/app",
                          "postgresql://localhost.example/app", "postgresql://u:p@db.example:5432/app",
                          "postgresql://127.0.0.1.example/app", "postgresql:///app?host=/run/postgresql,db.example"}) {
    CAPTURE(std::string(url));
    CHECK(verifies(url));
  }
  for (const char* url :
       {"postgresql:///app", "postgresql:///app?host=/run/postgresql", "postgresql://localhost/app",
        "postgresql://127.0.0.1:5433/app", "postgresql://[::1]/app", "postgresql://%2Frun%2Fpostgresql/app",
        "postgresql://db.example/app?sslmode=require", "postgresql:///app?service=stock"}) {
    CAPTURE(std::string(url));
    CHECK_FALSE(verifies(url));
  }
}

TEST_CASE("postgres url: a message shows no user and no password, and the job gets the user without the password")
{
  const auto endpoint = parse_postgres_url("postgresql://bob%40x:hunter2@db/app?create=no");
  if (!endpoint && endpoint.error().code == ErrorCode::config) {
    skip(endpoint.error().text);
  }
  REQUIRE(endpoint);
  CHECK(endpoint->shown() == "postgresql://db/app?create=no");
  CHECK(endpoint->without_passwords() == "postgresql://bob%40x@db/app?create=no");
  const ConnectionSpec spec = connection_spec(*endpoint);
  CHECK(spec.url == "postgresql://db/app");
  CHECK(spec.user == "bob@x");
  CHECK(spec.password == "hunter2");
  CHECK_FALSE(spec.creates_tables);
}

TEST_CASE("postgres url: each of several hosts, unless libpq must know them all")
{
  const auto hosts = [](const std::string& url) {
    const auto endpoint = parse_postgres_url(url);
    if (!endpoint && endpoint.error().code == ErrorCode::config) {
      skip(endpoint.error().text);
    }
    REQUIRE_MESSAGE(endpoint, endpoint.error().text);
    std::string text;
    for (const Host& each : connection_spec(*endpoint).hosts) {
      text += each.name + "|" + each.address + "|" + each.port + " ";
    }
    return text;
  };
  CHECK(hosts("postgresql://a,b/app") == "a||5432 b||5432 ");
  CHECK(hosts("postgresql://a:5433,b/app") == "a||5433 b||5432 ");
  CHECK(hosts("postgresql:///app?host=/run/postgresql,b&port=5433") == "/run/postgresql||5433 b||5433 ");
  CHECK(hosts("postgresql:///app?hostaddr=10.0.0.1,10.0.0.2") == "|10.0.0.1|5432 |10.0.0.2|5432 ");
  CHECK(hosts("postgresql://a,b/app?hostaddr=10.0.0.1,10.0.0.2&target_session_attrs=primary") ==
        "a|10.0.0.1|5432 b|10.0.0.2|5432 ");
  for (const char* url :
       {"postgresql://a/app", "postgresql:///app", "postgresql:///app?service=stock", "postgresql:///app?host=,b",
        "postgresql://a,b/app?hostaddr=10.0.0.1,", "postgresql://a,b,c/app?port=1,2",
        "postgresql://a,b/app?target_session_attrs=prefer-standby"}) {
    CAPTURE(std::string(url));
    CHECK(hosts(url).empty());
  }
}

TEST_CASE("postgres url: a passphrase in the URL is refused and not shown")
{
  const auto refused = parse_postgres_url("postgresql://db/app?sslpassword=hunter2");
  REQUIRE(!refused);
  CHECK(refused.error().text.find("sslpassword") != std::string::npos);
  CHECK(refused.error().text.find("hunter2") == std::string::npos);
}
