// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"
#include "base/text.h"

#include <doctest/doctest.h>

using namespace rlock;

TEST_CASE("log: a line of JSON has all that is known, in its order")
{
  CHECK(
      json_line("error", "the lock \"k\" was lost", {.event = "lost", .key = "k", .fence = 7, .exit_code = 121},
                1'795'287'600'007) ==
      R"({"time":"2026-11-21T19:00:00.007Z","level":"error","event":"lost","key":"k","message":"the lock \"k\" was lost","holder":null,"place":null,"fence":7,"exit_code":121})");
  CHECK(
      json_line("notice", "", {.holder = "uuid:1", .place = 2}, 1) ==
      R"({"time":"1970-01-01T00:00:00.001Z","level":"notice","event":null,"key":null,"message":"","holder":"uuid:1","place":2,"fence":null,"exit_code":null})");
}

TEST_CASE("log: JSON text escapes what it must, and repairs what is no UTF-8")
{
  CHECK(json_text("") == "\"\"");
  CHECK(json_text("a\"b\\c\n\x1b\x7f") == R"("a\"b\\c\u000a\u001b\u007f")");
  CHECK(json_text("\xc2\x9b\xc2\xa0") == "\"\\u009b\xc2\xa0\"");
  CHECK(json_text("é€🔒") == "\"é€🔒\"");
  for (const char* bad : {"\xff", "\xc3", "\xc0\x80", "\xed\xa0\x80", "\xf5\x80\x80\x80"}) {
    CAPTURE(bad);
    const std::string text = json_text(std::string(bad) + "x");
    CHECK(text.starts_with("\"\xef\xbf\xbd"));
    CHECK(text.ends_with("x\""));
  }
  CHECK(json_text(std::string_view("\0", 1)) == R"("\u0000")");
}
