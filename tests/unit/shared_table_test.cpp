// SPDX-License-Identifier: Apache-2.0
// What the adapters for a table of ShedLock have in common.
#include "engine/shared_table.h"

#include <array>

#include "support/test.h"

using namespace rlock::test;
using namespace rlock::record;

TEST_CASE("shared table: a version has the number of the record and the face, whatever the holder is called")
{
  for (const char* holder : {"", "java", "a b  c", "1 2"}) {
    const SharedVersion version{.number = "-17", .until_us = 1'700'000'000'123'000, .holder = holder};
    const SharedVersion parts = SharedVersion::of(version.text());
    CHECK(parts.number == "-17");
    CHECK(parts.until_us == 1'700'000'000'123'000);
    CHECK(parts.holder == holder);
  }
}

TEST_CASE("shared table: its names")
{
  for (const char* name : {"shedlock", "jobs.shedlock", "Shed_Lock2"}) {
    CHECK(is_table_name(name));
  }
  for (const char* name : {"", ".a", "a.", "a.b.c", "a b", "a`b", "a;b", "a\"b"}) {
    CAPTURE(std::string(name));
    CHECK_FALSE(is_table_name(name));
  }
  CHECK(is_table_name(std::string(40, 'a')));
  CHECK_FALSE(is_table_name(std::string(41, 'a')));
  CHECK(quoted_table("jobs.shedlock", "_rlock_event", '`') == "`jobs`.`shedlock_rlock_event`");
  CHECK(quoted_table("shedlock", "", '"') == "\"shedlock\"");
  CHECK(quoted_name("a\"b", '"') == "\"a\"\"b\"");
}

TEST_CASE("shared table: words of SQL")
{
  const std::array<SqlWord, 2> words{{{"{lock}", "t"}, {"{now}", "now()"}}};
  CHECK(with_words("select '{', {now} from {lock} where a = '{other}'{", words) ==
        "select '{', now() from t where a = '{other}'{");
  CHECK(with_words("", words).empty());
}
