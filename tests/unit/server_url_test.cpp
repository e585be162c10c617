// SPDX-License-Identifier: Apache-2.0
#include "redis/url.h"
#include "support/test.h"

using namespace rlock::test;

namespace {

std::string told(const char* url)
{
  const auto endpoint = parse_url(url);
  if (!endpoint) {
    CHECK(endpoint.error().code == ErrorCode::usage);
    return "error: " + endpoint.error().text;
  }
  return endpoint->shown() + " user=" + endpoint->user + " password=" + endpoint->password;
}

}  // namespace

TEST_CASE("url: what is meant by each good form")
{
  struct Row {
    const char* why;
    const char* url;
    const char* expect;
  };
  const Row rows[] = {
      {"port and db by default", "redis://db1", "redis://db1:6379 user= password="},
      {"a slash alone is db 0", "redis://db1/", "redis://db1:6379 user= password="},
      {"all of it", "redis://ann:pw@db1:7000/3", "redis://db1:7000/3 user=ann password=pw"},
      {"a host alone", "db1", "redis://db1:6379 user= password="},
      {"host and port alone", "db1.example.com:7000", "redis://db1.example.com:7000 user= password="},
      {"an address alone", "127.0.0.1", "redis://127.0.0.1:6379 user= password="},
      {"password without a user", "redis://:pw@db1", "redis://db1:6379 user= password=pw"},
      {"user without a password", "redis://ann@db1", "redis://db1:6379 user=ann password="},
      {"percent-decoded", "redis://a%40b:p%2Fw%3a@db1", "redis://db1:6379 user=a@b password=p/w:"},
      {"a colon in the password", "redis://a:b:c@db1", "redis://db1:6379 user=a password=b:c"},
      {"an @ in the password", "redis://a:b@c@db1", "redis://db1:6379 user=a password=b@c"},
      {"IPv4", "redis://127.0.0.1:6380", "redis://127.0.0.1:6380 user= password="},
      {"IPv6", "redis://[::1]", "redis://[::1]:6379 user= password="},
      {"IPv6, port, db", "redis://[fe80::1%eth0]:1/2", "redis://[fe80::1%eth0]:1/2 user= password="},
      {"the greatest port and db", "redis://h:65535/2147483647", "redis://h:65535/2147483647 user= password="},
      {"TLS", "rediss://ann:pw@db1/3", "rediss://db1:6379/3 user=ann password=pw"},
      {"unix socket", "unix:///run/redis.sock", "unix:///run/redis.sock user= password="},
      {"unix socket, all of it", "unix://ann:pw@/r.sock?db=4", "unix:///r.sock?db=4 user=ann password=pw"},
      {"an odd path reads back", "unix:///a%3fb%25@c", "unix:///a%3Fb%25%40c user= password="},
      {"IPv6 with its zone as RFC 6874 has it", "redis://[fe80::1%25eth0]",
       "redis://[fe80::1%eth0]:6379 user= password="},
      {"a zone that looks encoded", "redis://[fe80::1%e0]", "redis://[fe80::1%e0]:6379 user= password="},
      {"cluster", "redis+cluster://ann:pw@h1:7000,h2,[::1]:7002/0",
       "redis+cluster://h1:7000,h2:6379,[::1]:7002 user=ann password=pw"},
      {"cluster in TLS, one node", "rediss+cluster://h1", "rediss+cluster://h1:6379 user= password="},
      {"local", "local:", "local: user= password="},
      {"sentinels", "redis+sentinel://a,b:1/m", "redis+sentinel://a:26379,b:1/m user= password="},
      {"sentinels, all of it", "redis+sentinel://ann:pw@a:1,[::1]:2/m-1.x_Y/3",
       "redis+sentinel://a:1,[::1]:2/m-1.x_Y/3 user=ann password=pw"},
      {"sentinels with TLS", "rediss+sentinel://a/m", "rediss+sentinel://a:26379/m user= password="},
      {"one named twice", "redis+sentinel://a,a:26379/m/", "redis+sentinel://a:26379/m user= password="},
  };
  for (const Row& row : rows) {
    CAPTURE(row.why);
    CHECK(told(row.url) == row.expect);
  }
}

TEST_CASE("url: what is the sentinels' own")
{
  const auto plain = parse_url("redis+sentinel://u:p@a/m");
  REQUIRE(plain);
  CHECK(plain->sentinels.master == "m");
  CHECK(plain->sentinels.user == "");
  CHECK(plain->sentinels.password == "");
  CHECK_FALSE(plain->tls);
  CHECK_FALSE(plain->sentinels.tls);

  const auto own = parse_url("rediss+sentinel://a/m?sentinel_username=ann&sentinel_password=p%26w&sentinel_tls=no");
  REQUIRE(own);
  CHECK(own->sentinels.user == "ann");
  CHECK(own->sentinels.password == "p&w");
  CHECK(own->tls);
  CHECK_FALSE(own->sentinels.tls);
  CHECK(own->shown() == "rediss+sentinel://a:26379/m?sentinel_tls=no");
}

TEST_CASE("url: what is shown leads to the same place again")
{
  for (const char* url :
       {"redis://db1:7000/3", "redis://[::1]:6379", "rediss://db1:7000/3", "unix:///a%3Fb%25%40c%23%20d?db=4",
        "unix:///tmp/%C3%A9", "local:", "redis+sentinel://a:1,[::1]:2/m/3", "rediss+sentinel://a:1/m",
        "redis+sentinel://a:1/m?sentinel_tls=yes", "redis+cluster://h1:7000,[::1]:7001", "rediss+cluster://h1:7000"}) {
    const auto endpoint = parse_url(url);
    REQUIRE(endpoint);
    CHECK(endpoint->shown() == url);
  }
}

TEST_CASE("url: what is refused, and why")
{
  struct Row {
    const char* url;
    const char* says;
  };
  const Row rows[] = {
      {"", "it does not begin with scheme://"},
      {"ann@db1:6379",
       "valid ones: redis://host:6379/0, rediss:// with TLS, redis+cluster://host:7000,host:7001, "
       "redis+sentinel://host:26379/master"},
      {"://x", "it does not begin with scheme://"},
      {"http://db1", "does not know this scheme"},
      {"db1:x", "it does not begin with scheme://"},
      {"db1:", "it does not begin with scheme://"},
      {"db1:0", "the port must be 1 to 65535"},
      {"db1:6379/2", "it does not begin with scheme://"},
      {"local:x", "nothing may follow local:"},
      {"rediss://", "the host is missing"},
      {"redis+sentinel://", "the host is missing"},
      {"redis+sentinel://a,,b/m", "the host is missing"},
      {"redis+sentinel://a:1,b:2",
       "the name of the master must follow the sentinels, as in redis+sentinel://host1:26379,host2:26379/mymaster"},
      {"redis+sentinel://a:1/", "the name of the master must follow the sentinels"},
      {"redis+sentinel://a/m m", "the name of the master must follow the sentinels"},
      {"redis+sentinel://a/m/x", "only a db number may follow"},
      {"redis+sentinel://a/m/1/2", "only a db number may follow"},
      {"redis+sentinel://a/m?tls=yes", "its parameters are"},
      {"redis+sentinel://a/m?sentinel_tls=1", "its parameters are"},
      {"redis+sentinel://a/m?sentinel_password=%", "its parameters are"},
      {"redis+cluster://a:1/2", "a cluster has db 0 only"},
      {"redis+cluster://", "the host is missing"},
      {"redis+cluster://a:1,", "the host is missing"},
      {"redis+cluster://a:1,,b:2", "the host is missing"},
      {"redis+cluster://a:1,b:0", "the port must be 1 to 65535"},
      {"redis://", "the host is missing"},
      {"redis://:6379", "the host is missing"},
      {"redis://ann:pw@", "the host is missing"},
      {"redis://[]:1", "the host is missing"},
      {"redis://[::1", "IPv6"},
      {"redis://[db1]", "IPv6"},
      {"redis://::1", "IPv6 address needs brackets"},
      {"redis://[::1]x", "the port must be 1 to 65535"},
      {"redis://db 1", "the host name is invalid"},
      {"redis://h1,h2", "this names one server (several -S form a quorum; redis+sentinel://h1,h2/mymaster and "},
      {"rediss://h1:6379,h2:6379/0", "this names one server ("},
      {"h1:6379,h2", "this names one server ("},
      {"redis://h:", "the port must be 1 to 65535"},
      {"redis://h:0", "the port must be 1 to 65535"},
      {"redis://h:65536", "the port must be 1 to 65535"},
      {"redis://h:-1", "the port must be 1 to 65535"},
      {"redis://h:+1", "the port must be 1 to 65535"},
      {"redis://h:1x", "the port must be 1 to 65535"},
      {"redis://h/x", "only a db number may follow"},
      {"redis://h/-1", "only a db number may follow"},
      {"redis://h/1/", "only a db number may follow"},
      {"redis://h/2147483648", "only a db number may follow"},
      {"redis://h/1?x=y", "only a db number may follow"},
      {"redis://a%4:b@h", "must be written %25"},
      {"redis://a:%zz@h", "must be written %25"},
      {"redis+cluster://ann:50%@a:1", "must be written %25"},
      {"redis+sentinel://ann:50%@a:1/m", "must be written %25"},
      {"unix://ann:50%@/run/r.sock", "must be written %25"},
      {"redis://h\n", "control character"},
      {"unix://", "the path must be absolute"},
      {"unix:///", "the path must be absolute"},
      {"unix://tmp/x", "the path must be absolute"},
      {"unix:///a%00b", "control characters"},
      {"unix:///a?db=", "only ?db=N may follow"},
      {"unix:///a?x=1", "only ?db=N may follow"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.url);
    const std::string text = told(row.url);
    CAPTURE(text);
    CHECK(text.starts_with("error: bad server URL '"));
    CHECK(has(text, row.says));
    CHECK(text.find('\n') == std::string::npos);
  }
  const std::string deep = "unix:///" + std::string(107, 'x');
  CHECK(has(told(deep.c_str()), "107 bytes at most"));
}

TEST_CASE("url: a password that is not encoded is told to be, and no part of it is shown")
{
  for (const char* url : {"redis://:hq/ss@db1:6379", "redis://:p:a/s@s@db1", "redis://:hq#ss@db1/x@",
                          "redis+cluster://:hq/ss@db1:7000", "redis+sentinel://:hq/ss@db1:26379/m"}) {
    CAPTURE(url);
    const std::string text = told(url);
    CHECK_MESSAGE(has(text, "write / ? # @ and % as %2F %3F %23 %40 and %25, or give the password by --password-file"),
                  text);
    CHECK_FALSE(has(text, "hq"));
  }
}

TEST_CASE("url: an error never quotes what stands before the @")
{
  for (const char* url : {"redis+sentinel://ann:hush@h:0/m",
                          "redis+sentinel://h/m?sentinel_password=hush&x",
                          "redis+sentinel://a/?sentinel_password=hush",
                          "redis+sentinel://h/m?sentinel_password=x@hush&y",
                          "redis://a:sentinel_password=hush@h:0",
                          "redis://ann:hush@h:0",
                          "redis://ann:hush@",
                          "redis://:hu/hush@h:1",
                          "redis://:hush%@h",
                          "unix://ann:hush@x",
                          "unix://:hu/hush@/x?db=z",
                          "http://ann:hush@h",
                          "ann:hush@h",
                          "rediss://:hush@h:0",
                          "redis://ann:hush@h\x01",
                          "local:hush@h",
                          "redis://ann:hush",
                          "redis://:hush",
                          "ann:hush",
                          "redis+sentinel://h/m?sentinel_pasword=hush",
                          "redis+sentinel://h/m?x=1&sentinel_pass=hu@hush",
                          "redis+sentinel://ann:x@h/m?sentinel_pasword=hush",
                          "redis://ann:x@x?hush@h:0",
                          "redis://ann:x?hush@h:0",
                          "redis+cluster://ann:hush,h:1",
                          "unix:///s?password=hush",
                          "redis://ann:hush://h"}) {
    CAPTURE(url);
    const std::string text = told(url);
    CHECK(text.starts_with("error: "));
    CHECK_FALSE(has(text, "hush"));
    CHECK_FALSE(has(text, "ann"));
  }
}
