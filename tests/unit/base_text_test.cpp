// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"

#include <doctest/doctest.h>

using namespace rlock;

TEST_CASE("printable: nothing that comes from a server moves the cursor")
{
  CHECK(printable("stock") == "stock");
  CHECK(printable("größe") == "größe");
  CHECK(printable("a\nb\tc\\") == "a\\nb\\tc\\\\");
  CHECK(printable("\x1b[2J") == "\\x1b[2J");
  CHECK(printable(std::string_view("\0\x7f", 2)) == "\\x00\\x7f");
  CHECK(printable("\xc2\x9b" "31m") == "\\xc2\\x9b31m");  // C1: CSI in one character
}

TEST_CASE("without_secrets: what stands before the @ of a URL is nobody's business")
{
  CHECK(without_secrets("./job.sh --db redis://u:geheim@h/0 -x") == "./job.sh --db redis://***@h/0 -x");
  CHECK(without_secrets("a://p@h b://q@h") == "a://***@h b://***@h");
  CHECK(without_secrets("a://u:p@ss@h") == "a://***@h");
  CHECK(without_secrets("x a://u:p@h,i/m?sentinel_password=q&sentinel_tls=no y") ==
        "x a://***@h,i/m?sentinel_password=***&sentinel_tls=no y");
  CHECK(without_secrets("mail bob@h http://h/a@b") == "mail bob@h http://h/a@b");
  CHECK(without_secrets("") == "");
}
