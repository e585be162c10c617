// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"

#include "support/clean_text.h"
#include "support/test.h"

using namespace rlock::test;

TEST_CASE("printable: nothing that comes from a server moves the cursor")
{
  CHECK(printable("stock") == "stock");
  CHECK(printable("größe") == "größe");
  CHECK(printable("a\nb\tc\\") == "a\\nb\\tc\\\\");
  CHECK(printable("\x1b[2J") == "\\x1b[2J");
  CHECK(printable(std::string_view("\0\x7f", 2)) == "\\x00\\x7f");
  CHECK(printable("\xc2\x9b"
                  "31m") == "\\xc2\\x9b31m");  // C1: CSI in one character
}

TEST_CASE("printable: bytes that are no valid UTF-8 are escaped, a C1 control among them")
{
  CHECK(printable("a\x9b"
                  "31m") == "a\\x9b31m");  // CSI to a terminal of 8 bits
  CHECK(printable("\xc2\x80\xc2\x9f\xc2\xa0") == "\\xc2\\x80\\xc2\\x9f\xc2\xa0");
  CHECK(printable("\xff") == "\\xff");
  CHECK(printable("gr\xc3") == "gr\\xc3");
  CHECK(printable("\xc0\x80") == "\\xc0\\x80");           // longer than needed
  CHECK(printable("\xed\xa0\x80") == "\\xed\\xa0\\x80");  // a surrogate
  CHECK(printable("\xf4\x90\x80\x80") == "\\xf4\\x90\\x80\\x80");
  CHECK(printable("\xe2\x82\xac\xf0\x9f\x94\x92") == "\xe2\x82\xac\xf0\x9f\x94\x92");
}

TEST_CASE("printable: no character changes the direction of text or hides, and those that scripts need stay")
{
  CHECK(printable("a\u202eb") == "a\\xe2\\x80\\xaeb");
  CHECK(json_text("a\u202eb\u200b\ufeff\u061c") == "\"a\\u202eb\\u200b\\ufeff\\u061c\"");
  CHECK(json_text("\x1f\x7f\u009b") == R"("\u001f\u007f\u009b")");
  for (const std::string_view character : misleading) {
    CAPTURE(json_text(character));
    CHECK(is_clean(printable("x" + std::string(character) + "y")));
    CHECK(is_clean(without_controls(character)));
    CHECK(is_clean(json_text(character)));
  }
  // joiners, a combining mark, the soft hyphen, and the neighbours of the characters above
  for (const std::string text :
       {"\u200c", "\u200d", "e\u0301", "\u00ad", "\u061b", "\u061d", "\u200a", "\u2010", "\u2029", "\u202f", "\u205f",
        "\u2061", "\u2065", "\u206a", "\ufefe", "\uff00", "\U0001f512"}) {
    CHECK(printable(text) == text);
    CHECK(json_text(text) == "\"" + text + "\"");
  }
}

TEST_CASE("without_controls: text that is escaped already stays as it is")
{
  for (const char* text : {"a\nb\\", "\x9b[2J", "\xc2\x9b", "\x1b\x7f", "plain \xe2\x82\xac"}) {
    CHECK(without_controls(printable(text)) == printable(text));
  }
  CHECK(without_controls("a\n\x9b\\") == "a\\n\\x9b\\");
}

TEST_CASE("cut_to: a character of several bytes is not divided")
{
  CHECK(cut_to("stock", 9) == "stock");
  CHECK(cut_to("stock", 3) == "sto");
  CHECK(cut_to("a\xe2\x82\xac", 3) == "a");
  CHECK(cut_to("a\xe2\x82\xac", 4) == "a\xe2\x82\xac");
  CHECK(cut_to("", 0) == "");
  CHECK(shortened("stock", 3) == "sto...");
  CHECK(shortened("stock", 5) == "stock");
}

TEST_CASE("text: blanks at the ends are cut off, and those within stay")
{
  CHECK(trimmed(" \ta b\r") == "a b");
  CHECK(trimmed("a").size() == 1);
  CHECK(trimmed(" \t ").empty());
  CHECK(trimmed("").empty());
}
