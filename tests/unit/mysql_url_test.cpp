// SPDX-License-Identifier: Apache-2.0
#include "stores/mysql/mysql_url.h"

#include "support/test.h"

using namespace rlock::test;
using namespace rlock::mysql;

namespace {

ConnectionSpec spec_of(const std::string& url)
{
  const auto endpoint = parse_mysql_url(url);
  REQUIRE_MESSAGE(endpoint, endpoint.error().text);
  return connection_spec(*endpoint);
}

}  // namespace

TEST_CASE("mysql url: its parts")
{
  const ConnectionSpec spec =
      spec_of("mariadb://de%40ploy:hunter%32@db1:3307,[::1]/a%2Fpp?ssl-ca=/etc/ca.pem&create=no&defaults-file=/my.cnf");
  CHECK(spec.hosts == std::vector<HostPort>{{"db1", 3307}, {"::1", 0}});
  CHECK(spec.user == "de@ploy");
  CHECK(spec.password == "hunter2");
  CHECK(spec.database == "a/pp");
  CHECK(spec.ssl_ca == "/etc/ca.pem");
  CHECK(spec.defaults_file == "/my.cnf");
  CHECK_FALSE(spec.creates_tables);
  CHECK(spec.url == "mariadb://db1:3307,[::1]/a%2Fpp?ssl-ca=/etc/ca.pem&create=no&defaults-file=/my.cnf");
}

TEST_CASE("mysql url: the table of ShedLock, which is changed on request only")
{
  CHECK(spec_of("mysql:///app").table.empty());
  CHECK(spec_of("mysql:///app?table=jobs.shedlock").table == "jobs.shedlock");
  CHECK_FALSE(spec_of("mysql:///app?table=shedlock").creates_tables);
  CHECK(spec_of("mysql:///app?table=shedlock&create=yes").creates_tables);
  for (const char* url : {"mysql:///app?table=", "mysql:///app?table=a%20b", "mysql:///app?table=a.b.c"}) {
    CAPTURE(std::string(url));
    CHECK(parse_mysql_url(url).error().code == ErrorCode::usage);
  }
}

TEST_CASE("mysql url: without a host it is this one, by the default socket or the one of the URL")
{
  CHECK(spec_of("mysql:///app").hosts == std::vector<HostPort>{{"localhost", 0}});
  const ConnectionSpec spec = spec_of("mysql://bob@/app?socket=/run/my%20sql.sock");
  CHECK(spec.hosts == std::vector<HostPort>{{"localhost", 0}});
  CHECK(spec.socket == "/run/my sql.sock");
  CHECK(spec.user == "bob");
  CHECK(spec.creates_tables);
}

TEST_CASE("mysql url: a server that may be another host must show a valid certificate, unless the URL says otherwise")
{
  for (const char* url : {"mysql://db.example/app", "mysql://localhost,db.example/app", "mysql://localhost.example/app",
                          "mysql://127.0.0.1.example/app", "mysql://10.0.0.1:3307/app",
                          "mysql://localhost/app?ssl-mode=VERIFY_IDENTITY"}) {
    CAPTURE(std::string(url));
    CHECK(spec_of(url).uses_tls);
    CHECK(spec_of(url).verifies_tls);
  }
  for (const char* url : {"mysql:///app", "mysql://localhost/app", "mysql://127.0.0.1:3307/app", "mysql://[::1]/app",
                          "mysql://db.example/app?ssl-mode=disabled"}) {
    CAPTURE(std::string(url));
    CHECK_FALSE(spec_of(url).uses_tls);
    CHECK_FALSE(spec_of(url).verifies_tls);
  }
  CHECK(spec_of("mysql://db.example/app?ssl-mode=required").uses_tls);
  CHECK_FALSE(spec_of("mysql://db.example/app?ssl-mode=required").verifies_tls);
}

TEST_CASE("mysql url: what is wrong is 64 with its reason")
{
  const std::vector<std::pair<std::string, std::string>> rows{
      {"mysql:app", "it has no //"},
      {"mysql://db", "it names no database"},
      {"mysql://db/", "it names no database"},
      {"mysql://db/a%2", "a % is not followed"},
      {"mysql://db/a\x1b[2Jb", "it has a character that cannot be shown"},
      {"mysql://db/app?ssl-ca=a\x92", "it has a character that cannot be shown"},
      {"mysql://db/a\u202eb", "it has a character that cannot be shown"},
      {"mysql://a%@db/app", "a % is not followed"},
      {"mysql:///app?socket=%zz", "a % is not followed"},
      {"mysql://db:0/app", "'db:0' is no host"},
      {"mysql://db:65536/app", "'db:65536' is no host"},
      {"mysql://db:33x/app", "a host or its port, from 1 to 65535, is invalid"},
      {"mysql://db:/app", "'db:' is no host"},
      {"mysql://a,,b/app", "'' is no host"},
      {"mysql://[::1/app", "a host or its port, from 1 to 65535, is invalid"},
      {"mysql://db/app?colour=blue", "it has no parameter 'colour'"},
      {"mysql://db/app?create=maybe", "create is yes or no"},
      {"mysql://db/app?ssl-mode=preferred", "ssl-mode is disabled, required or verify_identity"},
      {"mysql://db/app?socket=/s", "a socket is on this host"},
      {"mysql://db/app?socket=/s&socket=/t", "given twice"},
  };
  for (const auto& row : rows) {
    CAPTURE(row.first);
    const auto refused = parse_mysql_url(row.first);
    REQUIRE(!refused);
    CHECK(refused.error().code == ErrorCode::usage);
    CAPTURE(refused.error().text);
    CHECK(has(refused.error().text, row.second));
  }
}

TEST_CASE("mysql url: letters of other scripts stand in it as they are, and other bytes with %")
{
  CHECK(spec_of("mysql://db/größe").url == "mysql://db/größe");
  CHECK(spec_of("mysql://db/a%1b%92").url == "mysql://db/a%1b%92");
}

TEST_CASE("mysql url: a message shows no user and no password, and the job gets the user without the password")
{
  const auto endpoint = parse_mysql_url("mysql://bob%40x:hunter2@db/app?create=no");
  REQUIRE(endpoint);
  CHECK(endpoint->shown() == "mysql://db/app?create=no");
  CHECK(endpoint->without_passwords() == "mysql://bob%40x@db/app?create=no");
  for (const char* url :
       {"mysql://bob:hunter2@db/app?colour=blue", "mysql://db/app?password=hunter2", "mysql://bob:hunter2@db:x/app"}) {
    const auto refused = parse_mysql_url(url);
    REQUIRE(!refused);
    CHECK_FALSE(has(refused.error().text, "hunter2"));
  }
}
