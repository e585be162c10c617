// SPDX-License-Identifier: Apache-2.0
#include "stores/zookeeper/zookeeper_url.h"

#include "support/test.h"

using namespace rlock::test;
using namespace rlock::zookeeper;

namespace {

ConnectionSpec spec_of(const std::string& url)
{
  const auto endpoint = parse_zookeeper_url(url);
  REQUIRE_MESSAGE(endpoint, endpoint.error().text);
  return connection_spec(*endpoint);
}

}  // namespace

TEST_CASE("zookeeper url: hosts, ports, chroot and login are read")
{
  const ConnectionSpec spec = spec_of("zookeeper://bob:a%40b@h1,h2:2182,[::1]:2183/app/locks/");
  REQUIRE(spec.members.size() == 3);
  CHECK(spec.members[0].shown() == "zookeeper://h1:2181");
  CHECK(spec.members[1].shown() == "zookeeper://h2:2182");
  CHECK(spec.members[2].shown() == "zookeeper://[::1]:2183");
  CHECK(spec.chroot == "/app/locks");
  CHECK(spec.user == "bob");
  CHECK(spec.password == "a@b");
  CHECK(spec.url == "zookeeper://h1,h2:2182,[::1]:2183/app/locks/");
  CHECK_FALSE(spec.uses_tls);
  CHECK_FALSE(spec.is_this_host);

  const ConnectionSpec secure = spec_of("zookeeper+tls://127.0.0.1");
  CHECK(secure.members[0].shown() == "zookeeper+tls://127.0.0.1:2181");
  CHECK(secure.members[0].tls.has_value());
  CHECK(secure.chroot.empty());
  CHECK(secure.is_this_host);
  CHECK(spec_of("zookeeper://h1,h2/a%2Cb").chroot == "/a,b");
}

TEST_CASE("zookeeper url: what is invalid is refused with its reason, and without the password")
{
  struct Row {
    const char* url;
    const char* why;
  };
  for (const Row& row :
       {Row{"zookeeper:h1", "//"}, Row{"zookeeper://", "host"}, Row{"zookeeper://h1,", "host"},
        Row{"zookeeper://h1:0", "port"}, Row{"zookeeper://h1:x", "port"}, Row{"zookeeper://h1:99999", "port"},
        Row{"zookeeper://[::1", "host"}, Row{"zookeeper://h1/a//b", "path"}, Row{"zookeeper://h1/a/../b", "path"},
        Row{"zookeeper://h1/zookeeper", "path"}, Row{"zookeeper://h1?a=hunter2", "parameter a"},
        Row{"zookeeper://u:hunter2@h1/%zz", "%25"}, Row{"zookeeper://:hunter2@h1", "user"},
        Row{"zookeeper://a%3Ab:hunter2@h1", "colon"},
        Row{"zookeeper://h1:1/team/app,h2:2/team/app", "the chroot stands once, after the last host"},
        Row{"zookeeper://h1/a,b", "write a comma in a name as %2C"}}) {
    CAPTURE(std::string(row.url));
    const auto endpoint = parse_zookeeper_url(row.url);
    REQUIRE(!endpoint);
    CHECK(endpoint.error().code == ErrorCode::usage);
    CHECK_MESSAGE(endpoint.error().text.find(row.why) != std::string::npos, endpoint.error().text);
    CHECK(endpoint.error().text.find("hunter2") == std::string::npos);
  }
}
