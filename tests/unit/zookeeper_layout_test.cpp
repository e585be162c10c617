// SPDX-License-Identifier: Apache-2.0
#include "stores/zookeeper/zookeeper_layout.h"

#include "support/test.h"

#include <limits>
#include <set>

using namespace rlock::test;
using namespace rlock::zookeeper;

TEST_CASE("zookeeper layout: each name of a lock has a node of its own, whose name ZooKeeper takes")
{
  std::set<std::string> seen;
  for (const std::string& name :
       {std::string("k"), std::string("a/b"), std::string("."), std::string(".."), std::string("%2E"),
        std::string("\xc3\xa9"), std::string("a b"), std::string("\0x", 2), std::string("~"), std::string("{a}:b"),
        std::string("\x80\xff")}) {
    CAPTURE(name);
    const std::string node = node_name(name);
    CHECK(node.find('/') == std::string::npos);
    CHECK(node != ".");
    CHECK(node != "..");
    CHECK(std::all_of(node.begin(), node.end(), [](char c) { return c > ' ' && c < 0x7f; }));
    CHECK(text_of_node(node) == name);
    CHECK(seen.insert(node).second);
  }
  for (const char* foreign : {"a b", "%zz", "%6B", "~"}) {
    CHECK_FALSE(text_of_node(foreign));
  }
}

TEST_CASE("zookeeper layout: the name of a listener's node has its channel, and other nodes are no listeners")
{
  const std::string id(16, 'a');
  for (const std::string channel : {"rlock:owner:{k/1}:me", "other", "k/1", ""}) {
    CAPTURE(channel);
    CHECK(channel_of_listener(listener_name(id, "k/1", channel), "k/1") == channel);
  }
  for (const std::string& node : {std::string("lock-0000000001"), id, id + "-%zz", std::string()}) {
    CHECK_FALSE(channel_of_listener(node, "k"));
  }
}

TEST_CASE("zookeeper layout: records and inboxes are read back, and refused when they are cut or unknown")
{
  const std::string data = encoded("bytes", {.holder = "me", .until_us = 5, .forget_us = 6});
  const auto record = record_data(data);
  REQUIRE(record);
  CHECK(record->bytes == "bytes");
  CHECK(record->face.holder == "me");
  CHECK(record->face.until_us == 5);
  CHECK(record->face.forget_us == 6);
  CHECK_FALSE(record_data(data.substr(0, 20)));
  CHECK_FALSE(record_data("somebody's data, which is long enough"));
  CHECK_FALSE(record_data(""));

  const Inbox inbox = inbox_of(encoded(Inbox{.last = 7, .texts = {"a", "b"}}));
  CHECK(inbox.last == 7);
  CHECK(inbox.texts == std::vector<std::string>{"a", "b"});
  CHECK(inbox_of("nonsense").texts.empty());
  constexpr auto limits = std::numeric_limits<std::int64_t>();
  for (const std::int64_t impossible : {limits.max(), limits.min(), std::int64_t{1}}) {
    CAPTURE(impossible);
    CHECK(inbox_of(encoded(Inbox{.last = impossible, .texts = {"a", "b"}})).texts.empty());
  }
}

TEST_CASE("zookeeper layout: the nodes stand below the chroot, each behind its parent, and events sort by their number")
{
  const Layout layout("/a/b");
  CHECK(layout.directories() == std::vector<std::string>{"/a", "/a/b", "/a/b/rlock", "/a/b/rlock/deletions",
                                                         "/a/b/rlock/locks", "/a/b/rlock/events",
                                                         "/a/b/rlock/presence"});
  CHECK(layout.event("k", 9) < layout.event("k", 10));
  CHECK(Layout("").root() == "/rlock");
}
