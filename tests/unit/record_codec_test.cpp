// SPDX-License-Identifier: Apache-2.0
#include "engine/record_codec.h"

#include "support/test.h"

using namespace rlock::test;
using namespace rlock::record;

namespace {

LockRecord sample()
{
  SortedSet set;
  set.add("first", 1.5);
  set.add("second", 1e17);
  LockRecord record{.keys = {}, .log_base = 300};
  record.keys["text"] = {.data = std::string("a\0b", 3), .expires = 1'700'000'000'000};
  record.keys["hash"] = {.data = Hash{{"b", "1"}, {"a", ""}}, .expires = std::nullopt};
  record.keys["set"] = {.data = set, .expires = 5};
  record.keys["list"] = {.data = List{"x", std::string(200, 'y')}, .expires = std::nullopt};
  return record;
}

}  // namespace

TEST_CASE("record codec: what was encoded is decoded, in the same order")
{
  const std::string bytes = encode(sample());
  const auto decoded = decode(bytes);
  REQUIRE(decoded);
  CHECK(decoded->log_base == 300);
  CHECK(decoded->keys.size() == 4);
  CHECK(std::get<std::string>(decoded->keys.at("text").data) == std::string("a\0b", 3));
  CHECK(decoded->keys.at("text").expires == 1'700'000'000'000);
  CHECK(std::get<Hash>(decoded->keys.at("hash").data) == Hash{{"b", "1"}, {"a", ""}});
  CHECK(std::get<SortedSet>(decoded->keys.at("set").data).scores.at("second") == 1e17);
  CHECK(std::get<List>(decoded->keys.at("list").data)[1].size() == 200);
  CHECK(encode(*decoded) == bytes);
}

TEST_CASE("record codec: what owners are bound to is in the record, and only there changes the format")
{
  CHECK(encode(sample()).starts_with("rlock1\n"));
  LockRecord bound = sample();
  bound.time_us = 1'700'000'000'000'001;
  bound.bindings["owner"] = {{.id = std::string("a\0b", 3), .lease_ms = 30'000, .keeping = Keeping::kept},
                             {.id = "other", .lease_ms = 1, .keeping = Keeping::unkept}};
  const std::string bytes = encode(bound);
  auto decoded = decode(bytes);
  REQUIRE(decoded);
  CHECK(decoded->time_us == 1'700'000'000'000'001);
  CHECK(decoded->keys.size() == 4);
  REQUIRE(decoded->bindings["owner"].size() == 2);
  CHECK(decoded->bindings["owner"][0].id == std::string("a\0b", 3));
  CHECK(decoded->bindings["owner"][0].lease_ms == 30'000);
  CHECK(decoded->bindings["owner"][1].keeping == Keeping::unkept);
  CHECK(encode(*decoded) == bytes);
  CHECK(!decode(bytes.substr(0, 40)));
}

TEST_CASE("record codec: an empty record has no bytes")
{
  CHECK(encode(LockRecord{}).empty());
  const auto decoded = decode("");
  REQUIRE(decoded);
  CHECK(decoded->keys.empty());
}

TEST_CASE("record codec: a newer format, and bytes that are no record, are refused as configuration")
{
  const auto newer = decode("rlock3\n123");
  REQUIRE(!newer);
  CHECK(newer.error().code == ErrorCode::config);
  CHECK(newer.error().text.find("newer version") != std::string::npos);
  const auto other = decode("{\"a\": 1}");
  REQUIRE(!other);
  CHECK(other.error().code == ErrorCode::config);
}

TEST_CASE("record codec: a record that is cut or changed anywhere never becomes more than a record")
{
  const std::string bytes = encode(sample());
  const std::size_t whole = decode(bytes)->keys.size();
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    CAPTURE(size);
    const auto cut = decode(std::string_view(bytes).substr(0, size));
    CHECK((!cut || cut->keys.size() < whole));
    std::string changed = bytes;
    changed[size] = '\xff';
    (void)decode(changed);  // no crash, no endless loop
  }
}
