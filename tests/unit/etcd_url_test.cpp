// SPDX-License-Identifier: Apache-2.0
#include "stores/etcd/etcd_url.h"
#include "support/test.h"

using namespace rlock::test;

namespace {

etcd::ConnectionSpec spec_of(std::string_view url)
{
  const auto endpoint = etcd::parse_etcd_url(url);
  REQUIRE_MESSAGE(endpoint, endpoint.error().text);
  return etcd::connection_spec(*endpoint);
}

std::string why_not(std::string_view url)
{
  const auto endpoint = etcd::parse_etcd_url(url);
  REQUIRE_FALSE(endpoint);
  CHECK(endpoint.error().code == ErrorCode::usage);
  return endpoint.error().text;
}

}  // namespace

TEST_CASE("etcd url: members, prefix, user and password")
{
  const auto spec = spec_of("etcd://shop:p%40ss@a,b:2479,[::1]:2579/team/locks/");
  CHECK(spec.user == "shop");
  CHECK(spec.password == "p@ss");
  CHECK(spec.prefix == "team/locks");
  CHECK(spec.url == "etcd://a,b:2479,[::1]:2579/team/locks/");
  CHECK_FALSE(spec.uses_tls());
  REQUIRE(spec.members.size() == 3);
  CHECK(spec.members[0].shown() == "etcd://a:2379");
  CHECK(spec.members[1].shown() == "etcd://b:2479");
  CHECK(spec.members[2].shown() == "etcd://[::1]:2579");
  CHECK(spec_of("etcd://a").prefix == "rlock");
  CHECK(spec_of("etcd://a/").prefix == "rlock");
  CHECK(spec_of("etcd://a/%2Fabsolute").prefix == "/absolute");
  CHECK(spec_of("etcd://a/x%2Cy").prefix == "x,y");
}

TEST_CASE("etcd url: the zone of a link-local address stands behind %25, or behind a bare %")
{
  CHECK(spec_of("etcd://[fe80::1%25eth0]:2379").members.front().host == "fe80::1%eth0");
  CHECK(spec_of("etcd://[fe80::1%eth0]").members.front().host == "fe80::1%eth0");
}

TEST_CASE("etcd url: etcds:// is with TLS, and its members are shown so")
{
  const auto spec = spec_of("etcds://a");
  CHECK(spec.uses_tls());
  CHECK(spec.members.front().shown() == "etcds://a:2379");
}

TEST_CASE("etcd url: an invalid one is refused with the reason, and without its password")
{
  struct Row {
    const char* url;
    const char* why;
  };
  const Row rows[] = {
      {"etcd:a", "'etcd:' is invalid: it has no //"},
      {"etcd:/a", "'etcd:/a' is invalid: it has no //"},
      {"etcd:/u:hunter2@a", "'etcd:' is invalid: it has no //"},
      {"etcd:/a:hunter2", "'etcd:' is invalid: it has no //"},
      {"etcd:///prefix", "it names no host"},
      {"etcd://a:0", "'a:0' is no host with a port from 1 to 65535"},
      {"etcd://a:65536", "'a:65536' is no host"},
      {"etcd://a,,b", "'' is no host"},
      {"etcd://a,", "'' is no host"},
      {"etcd://a/x%", "a % is not followed by two hexadecimal digits"},
      {"etcd://u:hunter2%@a", "a % is not followed by two hexadecimal digits"},
      {"etcd://:hunter2@a", "a password needs a user"},
      {"etcd://a/p?create=no", "it has no parameters"},
      {"etcd://a/p%00", "the prefix has a byte 0"},
      {"etcd://a/app,b/app", "the prefix stands once, after the last host"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.url);
    const std::string text = why_not(row.url);
    CHECK_MESSAGE(has(text, row.why), text);
    CHECK_FALSE(has(text, "hunter2"));
  }
}
