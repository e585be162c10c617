// SPDX-License-Identifier: Apache-2.0
// What redis_fixture.h offers for replies.
#include "support/redis_fixture.h"

#include <doctest/doctest.h>

namespace rlock::test {

std::string show(const Reply& reply)
{
  switch (reply.kind) {
    case Reply::Kind::nil: return "nil";
    case Reply::Kind::integer: return std::to_string(reply.integer);
    case Reply::Kind::text: return '"' + reply.text + '"';
    case Reply::Kind::error: return "error: " + reply.text;
    case Reply::Kind::array: break;
  }
  std::string elements;
  for (const Reply& element : reply.elements) {
    elements += (elements.empty() ? "" : ", ") + show(element);
  }
  return "[" + elements + "]";
}

std::int64_t as_int(const Reply& reply)
{
  REQUIRE_MESSAGE(reply.kind == Reply::Kind::integer, "not an integer: " << show(reply));
  return reply.integer;
}

std::string as_text(const Reply& reply)
{
  REQUIRE_MESSAGE(reply.kind == Reply::Kind::text, "not a text: " << show(reply));
  return reply.text;
}

std::vector<std::string> as_texts(const Reply& reply)
{
  REQUIRE_MESSAGE(reply.kind == Reply::Kind::array, "not an array: " << show(reply));
  std::vector<std::string> texts;
  for (const Reply& element : reply.elements) {
    texts.push_back(as_text(element));
  }
  return texts;
}

}  // namespace rlock::test
