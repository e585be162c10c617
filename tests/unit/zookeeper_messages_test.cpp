// SPDX-License-Identifier: Apache-2.0
#include "stores/zookeeper/messages.h"

#include "stores/zookeeper/jute.h"
#include "support/test.h"

using namespace rlock::test;
using namespace rlock::zookeeper;

namespace {

std::string bytes_of(std::string_view hex)
{
  std::string bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16));
  }
  return bytes;
}

std::string hex_of(std::string_view bytes)
{
  constexpr std::string_view digits = "0123456789abcdef";
  std::string hex;
  for (const char byte : bytes) {
    hex += digits[static_cast<unsigned char>(byte) >> 4];
    hex += digits[static_cast<unsigned char>(byte) & 15];
  }
  return hex;
}

std::string stat_bytes(std::int32_t version)
{
  JuteWriter stat;
  stat.number(7).number(8).number(0).number(0).small(version).small(0).small(0).number(99).small(0).small(0).number(0);
  return stat.bytes();
}

std::string reply(std::int32_t number, std::int32_t code, std::string_view rest)
{
  return JuteWriter().small(number).number(5).small(code).append(rest).bytes();
}

std::optional<rlock::zookeeper::Answer> answer(const Operation& operation, const std::string& frame)
{
  const auto head = received(frame);
  return head ? answer_to(operation, *head) : std::nullopt;
}

// Each frame that is cut short.
template <typename Read>
void check_cut(const std::string& frame, const Read& read)
{
  for (std::size_t size = 0; size < frame.size(); ++size) {
    CAPTURE(size);
    CHECK_FALSE(read(frame.substr(0, size)));
  }
  CHECK(read(frame));
}

}  // namespace

TEST_CASE("zookeeper messages: requests have the bytes that ZooKeeper documents")
{
  CHECK(hex_of(connect_request({}, 3, 30000)) ==
        "00000000"
        "0000000000000003"
        "00007530"
        "0000000000000000"
        "00000010"
        "00000000000000000000000000000000"
        "00");
  CHECK(hex_of(frame_of(get_data("/a", true), 5)) ==
        "00000005"
        "00000004"
        "000000022f61"
        "01");
  CHECK(hex_of(frame_of(set_data("/a", "xy", 2), 6)) ==
        "00000006"
        "00000005"
        "000000022f61"
        "000000027879"
        "00000002");
  CHECK(hex_of(frame_of(create("/a", "", CreateMode::ephemeral, false), 1)) ==
        "00000001"
        "0000000f"
        "000000022f61"
        "00000000"
        "00000001"
        "0000001f"
        "00000005776f726c64"
        "00000006616e796f6e65"
        "00000001");
  CHECK(hex_of(frame_of(create("/a", "", CreateMode::container, true), 1)) ==
        "00000001"
        "00000013"
        "000000022f61"
        "00000000"
        "00000001"
        "0000001f"
        "0000000461757468"
        "00000000"
        "00000004");
  CHECK(hex_of(frame_of(digest_auth("u", "p"), -4)) ==
        "fffffffc"
        "00000064"
        "00000000"
        "00000006646967657374"
        "00000003753a70");
  const std::array parts{check("/a", 1), remove("/b", any_version)};
  CHECK(hex_of(multi(parts).body) ==
        "0000000d"
        "00"
        "ffffffff"
        "000000022f61"
        "00000001"
        "00000002"
        "00"
        "ffffffff"
        "000000022f62"
        "ffffffff"
        "ffffffff"
        "01"
        "ffffffff");
  CHECK(number_of(ping(), 9) == -2);
  CHECK(number_of(digest_auth("u", "p"), 9) == -4);
  CHECK(number_of(sync("/"), 9) == 9);
}

TEST_CASE("zookeeper messages: the answer to a connection is read, also without its last field, and refused if cut")
{
  const std::string frame = bytes_of(
      "00000000"
      "00002710"
      "0100000000000001"
      "00000002"
      "abcd");
  check_cut(frame, [](const std::string& each) { return connected(each).has_value(); });
  const auto answer = connected(frame + std::string(1, '\0'));
  REQUIRE(answer);
  CHECK(answer->timeout_ms == 10000);
  CHECK(answer->session.id == 0x0100000000000001);
  CHECK(answer->session.password == "\xab\xcd");
  CHECK_FALSE(
      connected(bytes_of("00000000"
                         "ffffffff"
                         "0000000000000001"
                         "00000000")));
}

TEST_CASE("zookeeper messages: answers are read, and refused when they are cut")
{
  const std::string data = reply(1, 0, JuteWriter().text("xy").append(stat_bytes(4)).bytes());
  check_cut(data, [](const std::string& each) { return answer(get_data("/a", false), each).has_value(); });
  const auto got = answer(get_data("/a", false), data);
  REQUIRE(got);
  CHECK(got->data == "xy");
  CHECK(got->stat.version == 4);
  CHECK(got->stat.czxid == 7);
  CHECK(got->stat.mzxid == 8);
  CHECK(got->stat.ephemeral_owner == 99);
  CHECK(got->zxid == 5);

  const std::string children = reply(1, 0, JuteWriter().small(2).text("b").text("a").bytes());
  check_cut(children, [](const std::string& each) { return answer(get_children("/"), each).has_value(); });
  CHECK(answer(get_children("/"), children)->children == std::vector<std::string>{"b", "a"});

  const auto none = answer(get_data("/a", false), reply(1, -101, ""));
  REQUIRE(none);
  CHECK(none->code == Code::no_node);
}

TEST_CASE("zookeeper messages: a multi that failed says which part failed")
{
  const std::array parts{check("/a", 1), set_data("/b", "", 3), remove("/c", 0)};
  JuteWriter body;
  for (const std::int32_t code : {0, -103, -2}) {
    body.small(-1).flag(false).small(code).small(code);
  }
  body.small(-1).flag(true).small(-1);
  const std::string frame = reply(3, 0, body.bytes());
  const auto failed = answer(multi(parts), frame);
  REQUIRE(failed);
  CHECK(failed->code == Code::bad_version);
  REQUIRE(failed->parts.size() == 3);
  CHECK(failed->parts[1].code == Code::bad_version);
  CHECK(failed->parts[2].code == Code::runtime_inconsistency);

  const auto done = answer(multi(parts), reply(3, 0,
                                               JuteWriter()
                                                   .small(13)
                                                   .flag(false)
                                                   .small(0)
                                                   .small(5)
                                                   .flag(false)
                                                   .small(0)
                                                   .append(stat_bytes(4))
                                                   .small(2)
                                                   .flag(false)
                                                   .small(0)
                                                   .small(-1)
                                                   .flag(true)
                                                   .small(-1)
                                                   .bytes()));
  REQUIRE(done);
  CHECK(done->is_ok());
  CHECK(done->parts.at(1).stat.version == 4);
  const auto made =
      answer(multi(std::array{create("/a", "", CreateMode::persistent, false)}),
             reply(3, 0, JuteWriter().small(1).flag(false).small(0).text("/a").small(-1).flag(true).small(-1).bytes()));
  REQUIRE(made);
  CHECK(made->parts.size() == 1);
  CHECK_FALSE(answer(multi(parts), reply(3, 0, "")));
  const std::string one_part = JuteWriter().small(13).flag(false).small(0).small(-1).flag(true).small(-1).bytes();
  CHECK_FALSE(answer(multi(parts), reply(3, 0, one_part)));
  const auto unknown_part = answer(multi(parts), reply(3, 0, JuteWriter().small(77).flag(false).small(0).bytes()));
  CHECK_FALSE(unknown_part);
}

TEST_CASE("zookeeper messages: lengths that lie are refused")
{
  for (const char* hex : {"7fffffff", "fffffffe",
                          "00000003"
                          "6162"}) {
    CAPTURE(std::string(hex));
    const std::string frame = reply(1, 0, bytes_of(hex));
    CHECK_FALSE(answer(get_data("/a", false), frame));
    CHECK_FALSE(answer(get_children("/a"), frame));
  }
  CHECK_FALSE(received("short"));
  CHECK_FALSE(
      watch_event(bytes_of("00000001"
                           "00000003"
                           "0000ffff")));
  const auto event =
      watch_event(bytes_of("00000003"
                           "00000003"
                           "000000022f61"));
  REQUIRE(event);
  CHECK(event->path == "/a");
}
