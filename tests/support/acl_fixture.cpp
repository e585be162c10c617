// SPDX-License-Identifier: Apache-2.0
#include "support/acl_fixture.h"

#include "support/skip.h"

#include <doctest/doctest.h>

#include <sstream>

namespace rlock::test {
namespace {

Words words_for(const AclFixture& fixture, Words all)
{
  all.insert(all.begin() + 1, {"-S", fixture.url()});
  return all;
}

ProcessOptions as_shop() { return {.env = {{"RLOCK_PASSWORD", test_password}}}; }

}  // namespace

Words acl_line(const std::string& glob)
{
  const Finished printed = succeeded(run_rlock({"acl", "-k", glob, "--user", "shop"}));
  std::istringstream text(printed.out);
  Words words;
  for (std::string word; text >> word;) {
    words.push_back(word);
  }
  return words;
}

void AclFixture::allow(Words line) const
{
  server.command({"ACL", "DELUSER", "shop"});
  line.emplace_back(">" + std::string(test_password));
  const Reply reply = server.command(line);
  skip_if(reply.is_error() && reply.text.find("unknown command") != std::string::npos, "the server knows no ACL");
  REQUIRE(show(reply) == "\"OK\"");
}

Finished AclFixture::run(const Words& all) const { return run_rlock(words_for(*this, all), as_shop()); }

Process AclFixture::start(const Words& all) const { return start_rlock(words_for(*this, all), as_shop()); }

}  // namespace rlock::test
