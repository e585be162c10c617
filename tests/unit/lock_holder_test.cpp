// SPDX-License-Identifier: Apache-2.0
#include "lock/holder.h"

#include "base/defaults.h"
#include "base/duration.h"
#include "lock/store.h"

#include <doctest/doctest.h>

using namespace rlock;

namespace {

const HolderInfo everything{.host = "web1",
                            .pid = 71,
                            .user = "alice",
                            .command = "./job.sh --rate=5%\nx",
                            .label = "",
                            .since_ms = 1'790'000'000'123,
                            .lease = Millis{30'000},
                            .automatic = true,
                            .kill_after = Millis{300'000},
                            .priority = -5};

}  // namespace

TEST_CASE("holder info: comes back as it was written")
{
  const auto back = decode_holder(encode(everything));
  REQUIRE(back);
  CHECK(back->host == everything.host);
  CHECK(back->pid == everything.pid);
  CHECK(back->user == everything.user);
  CHECK(back->command == everything.command);
  CHECK(back->label == everything.label);
  CHECK(back->since_ms == everything.since_ms);
  CHECK(back->lease == everything.lease);
  CHECK(back->automatic);
  CHECK(back->kill_after == everything.kill_after);
  CHECK(back->priority == everything.priority);
  CHECK(encode(HolderInfo{}).find("priority") == std::string::npos);
  CHECK(decode_holder("host=h\npriority=2000")->priority == most_priority);
}

TEST_CASE("holder info: only a freeze has a reason, which is cut, and tells its end by the ttl or else by its lease")
{
  CHECK(encode(everything).find("freeze") == std::string::npos);
  HolderInfo info = everything;
  info.freeze = "moving\nthe database";
  CHECK(decode_holder(encode(info))->freeze == info.freeze);
  CHECK(end_of_freeze_ms(info, Millis{60'000}, 1'790'000'100'000) == 1'790'000'160'000);
  CHECK(end_of_freeze_ms(info, Millis{59'997}, 1'790'000'100'000) == 1'790'000'160'000);
  CHECK(end_of_freeze_ms(info, std::nullopt, 1'790'000'100'000) == 1'790'000'030'000);
  info.freeze = std::string(1000, 'x');
  CHECK(decode_holder(encode(info))->freeze.size() == longest_label);
}

TEST_CASE("holder info: the pool of a shard, with its names where they are short")
{
  const Pool pools[] = {{.key = "stock", .size = 5},
                        {.key = "a\nb%", .size = 1, .names = "3"},
                        {.key = "phones", .size = 2, .names = "pixel 7,usb:1%"},
                        {.key = "phones", .size = most_shards, .names = ""}};
  CHECK(encode(everything).find("shard") == std::string::npos);
  CHECK_FALSE(decode_holder(encode(everything))->pool);
  for (const Pool& pool : pools) {
    HolderInfo info = everything;
    info.pool = pool;
    CHECK(decode_holder(encode(info))->pool == pool);
    CHECK(decode_holder(encode(info))->automatic);
  }
  for (const char* damaged : {"pool=a", "shards=3", "pool=a\nshards=0", "pool=a\nshards=-1", "pool=a\nshards=1025",
                              "pool=\nshards=3", "pool=a\nshards=3\nshard_names=x,y", "shard_names=x"}) {
    CHECK_FALSE(decode_holder(std::string("host=h\n") + damaged)->pool);
  }
}

TEST_CASE("holder info: the default of --kill-after takes no room, and an absurd one is cut")
{
  HolderInfo info = everything;
  info.kill_after = default_kill_after;
  CHECK(encode(info).find("kill") == std::string::npos);
  CHECK(decode_holder(encode(info))->kill_after == default_kill_after);
  info.kill_after = Millis{0};
  CHECK(decode_holder(encode(info))->kill_after == Millis{0});
  CHECK(decode_holder("kill_after=9223372036854775807")->kill_after == longest_duration);
  CHECK(decode_holder("kill_after=-1")->kill_after == Millis{0});
}

TEST_CASE("holder info: foreign data there does no harm")
{
  CHECK_FALSE(decode_holder(""));
  CHECK_FALSE(decode_holder("nonsense"));
  CHECK_FALSE(decode_holder(std::string("\0\xff\n\n=\n", 7)));
  const auto partly = decode_holder("pid=many\nhost=a%zz%4\nlease=\nnew=1");
  REQUIRE(partly);
  CHECK(partly->pid == 0);
  CHECK(partly->host == "a%zz%4");
}

TEST_CASE("holder info: a long command is cut, not refused")
{
  HolderInfo info = everything;
  info.command = std::string(100'000, 'x');
  CHECK(decode_holder(encode(info))->command.size() == 200);
}

TEST_CASE("holder info: secrets that another version wrote are masked, and long texts are cut")
{
  const auto old = decode_holder("command=job --password=S3cret redis://u:p@h\nlabel=" + std::string(1000, 'l') +
                                 "\nhost=" + std::string(1000, 'h') + "\nuser=" + std::string(1000, 'u'));
  REQUIRE(old);
  CHECK(old->command == "job --password=*** redis://***@h");
  CHECK(old->label.size() == longest_label);
  CHECK(old->host.size() == 256);
  CHECK(old->user.size() == 256);
}

TEST_CASE("holder info: a cut does not divide a character")
{
  HolderInfo info = everything;
  info.command = std::string(199, 'x') + "\xe2\x82\xac";
  CHECK(decode_holder(encode(info))->command == std::string(199, 'x'));
}

TEST_CASE("describe: in words, and safe to print")
{
  const Holder holder{.owner = Owner::of("u:1"), .count = 1, .info = everything};
  CHECK(describe(holder) == "alice@web1 (pid 71), running ./job.sh --rate=5%\\nx");
  const Holder foreign{.owner = Owner::of("uuid:\x1b[1m"), .count = 1, .info = std::nullopt};
  CHECK(describe(foreign) == "uuid:\\x1b[1m");
}

TEST_CASE("holder info: the person behind a user is named, and an older client skips that field")
{
  HolderInfo info = everything;
  CHECK(encode(info).find("sudo_user") == std::string::npos);
  CHECK(user_text(info) == "alice");
  info.user = "root";
  info.sudo_user = "ann";
  CHECK(encode(info).find("\nuser=root\nsudo_user=ann\n") != std::string::npos);
  CHECK(decode_holder(encode(info))->sudo_user == "ann");
  CHECK(user_text(info) == "ann as root");
  CHECK(holder_text(Owner::of("x"), info) == "ann as root@web1 (pid 71)");
}
