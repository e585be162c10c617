// SPDX-License-Identifier: Apache-2.0
// The face of a lock that another program writes as well.
#include "engine/foreign_face.h"
#include "engine/record_codec.h"
#include "support/test.h"

using namespace rlock::test;
using namespace rlock::record;

namespace {

constexpr std::int64_t now = 1'700'000'000'000'000;
const LockKeys names{*LockName::parse("k")};

std::string record_of(const std::string& owner, std::int64_t until_ms)
{
  LockRecord record;
  record.keys[names.lock] = {.data = Hash{{owner, "1"}}, .expires = until_ms};
  record.keys[names.fence] = {.data = std::string("7"), .expires = std::nullopt};
  return encode(record);
}

// The record that agrees with the face.
Result<std::string> with_face(const std::string& bytes, const Face& seen, const LockKeys& of, std::int64_t time_us)
{
  auto record = decode(bytes);
  if (!record) {
    return record.error();
  }
  fit_to_face(*record, seen, of, time_us);
  return encode(*record);
}

Face shown_by(const std::string& bytes)
{
  const auto record = decode(bytes);
  REQUIRE(record);
  CHECK(std::get<std::string>(record->keys.at(names.fence).data) == "7");  // the rest of the record stays
  return face_of(record->keys, names);
}

}  // namespace

TEST_CASE("foreign face: a face that agrees leaves the record as it is")
{
  const std::string held = record_of("me", now / 1000 + 5000);
  CHECK(*with_face(held, {.holder = "me", .until_us = now + 5'000'000}, names, now) == held);
  const std::string over = record_of("me", now / 1000 - 1);
  CHECK(*with_face(over, {.holder = "me", .until_us = now - 1'000}, names, now) == over);
  CHECK(with_face("", {.holder = "", .until_us = now}, names, now)->empty());
}

TEST_CASE("foreign face: another holder, or another end, is the hold of a foreign owner")
{
  const std::string held = record_of("me", now / 1000 + 5000);
  for (const Face& seen :
       {Face{.holder = "java", .until_us = now + 9'000'000}, Face{.holder = "me", .until_us = now + 1},
        Face{.holder = "java", .until_us = now + 5'000'000}}) {
    const Face known = shown_by(*with_face(held, seen, names, now));
    CHECK(known.holder == seen.holder);
    CHECK(known.until_us >= seen.until_us);
    CHECK(known.until_us < seen.until_us + 1'000);
  }
}

TEST_CASE("foreign face: a holder without a name holds the lock too")
{
  CHECK(face_of(decode(*with_face("", {.holder = "", .until_us = now + 1'000'000}, names, now))->keys, names).holder ==
        "?");
}

TEST_CASE("foreign face: a face that is over is a release, of whosever hold")
{
  const std::string held = record_of("me", now / 1000 + 5000);
  CHECK(shown_by(*with_face(held, {.holder = "me", .until_us = now}, names, now)).holder.empty());
}

TEST_CASE("foreign face: a row without a record is held by its face, and a damaged record is an error")
{
  const auto bytes = with_face("", {.holder = "java", .until_us = now + 1'000'000}, names, now);
  REQUIRE(bytes);
  CHECK(face_of(decode(*bytes)->keys, names).holder == "java");
  CHECK(with_face("nonsense", {.holder = "java", .until_us = now}, names, now).error().code == ErrorCode::config);
}

TEST_CASE("face: the list of kept runs has a record of its own, which no client holds")
{
  LockRecord record;
  const LockKeys runs{*LockName::parse("rlock:runs:{k}")};
  record.keys[runs.lock] = {.data = List{"a chunk"}, .expires = now / 1000 + 60'000};
  const Face face = face_of(record.keys, runs);
  CHECK(face.holder.empty());
  CHECK(face.until_us == 0);
  CHECK(face.forget_us == now + 60'000'000);
}
