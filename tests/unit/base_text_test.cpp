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
