// SPDX-License-Identifier: Apache-2.0
// The scripts write the records and entries of core/lock/schema.h in the bytes that rlock 0.1 wrote, and read them at any place.
#include "lua/scripted_lock.h"

#include "lock/event_log.h"

#include <doctest/doctest.h>

#include <regex>

using namespace rlock::test;
using namespace std::string_literals;

namespace {

const std::string info = "host=h\npid=1\nlease=30000\nauto=1";

Reply request(const ScriptedLock& lock, const std::string& owner, const std::string& how,
              const std::string& record = info, const std::string& hold = "")
{
  return lock.eval(scripts_of(Plain{}).acquire, owner, {hold.empty() ? owner : hold, "30000", record, how, "0", "0"});
}

Reply release(const ScriptedLock& lock, const std::string& owner, const std::string& result = "",
              const std::string& record = "")
{
  return lock.eval(scripts_of(Plain{}).release, owner, {owner, "0", "0", "0", result, "", record});
}

// Since the last call: "|" for NUL, "I" for `info`, "T" for the time and "N" for ms that were waited or left.
Words log_of(const ScriptedLock& lock)
{
  Words entries = as_texts(lock.server.command({"LRANGE", "rlock:events:{k}", "0", "-1"}));
  lock.server.command({"DEL", "rlock:events:{k}"});
  for (std::string& entry : entries) {
    std::ranges::replace(entry, '\0', '|');
    entry = std::regex_replace(entry, std::regex("^[0-9]{10}\\.[0-9]+|^[0-9]{16}"), "T");
    entry = std::regex_replace(entry, std::regex("(renewed_late\\|a\\|left|waited)\\|[0-9]+"), "$1|N");
    for (auto at = entry.find(info); at != std::string::npos; at = entry.find(info)) {
      entry.replace(at, info.size(), "I");
    }
  }
  return entries;
}

}  // namespace

SCRIPT_CASE("schema: the entries that the scripts write")
{
  SUBCASE("grant, nested hold, hand-over, confirmation")
  {
    request(lock, "a", "try");
    request(lock, "a", "again", info, "n");
    lock.release("a", "n");
    request(lock, "b", "wait");
    release(lock, "a", "\0exit\0000\0fence\0007"s);
    request(lock, "b", "wait");
    release(lock, "b", "\0outcome\0unused"s);
    CHECK(log_of(lock) == Words{"T|acquired|a|info|I", "T|released|n|owner|a|left|1",
                                "T|released|a|owner|a|exit|0|fence|7|to|b|info|I|waited|N", "T|confirmed|b",
                                "T|released|b|owner|b|outcome|unused"});
  }
  SUBCASE("confirmation of a claim that lasts as long as the lease")
  {
    request(lock, "a", "try");
    request(lock, "b", "wait");
    release(lock, "a");
    lock.server.command({"PEXPIRE", "k", "60000"});
    request(lock, "b", "wait");
    CHECK(log_of(lock).back() == "T|confirmed|b");
  }
  SUBCASE("trouble")
  {
    request(lock, "a", "try");
    lock.server.command({"PEXPIRE", "k", "5000"});
    lock.renew("a");
    lock.ask("a");
    request(lock, "w", "wait");
    lock.server.command({"DEL", "k"});
    lock.renew("a");
    CHECK(log_of(lock) == Words{"T|acquired|a|info|I", "T|renewed_late|a|left|N", "T|asked|a|by|eve@h",
                                "T|lost|a|what|none|by|eve@h|holder|", "T|acquired|w|info|I|waited|N|claim|yes"});
    lock.take_away("w");
    request(lock, "x", "try");
    CHECK(log_of(lock) == Words{"T|forced|w|by|eve@h", "T|acquired|x|info|I"});
    release(lock, "y", "\0outcome\0lost\0fence\0007"s, info);
    CHECK(log_of(lock) == Words{"T|lost|y|what|held|by||holder|x|info|I|outcome|lost|fence|7"});
  }
  SUBCASE("lost before the job began")
  {
    request(lock, "a", "try");
    lock.server.command({"DEL", "k"});
    lock.renew("a");
    release(lock, "a", "\0outcome\0unused"s);
    CHECK(log_of(lock) == Words{"T|acquired|a|info|I", "T|lost|a|what|none|by||holder|", "T|unused|a"});
  }
  SUBCASE("runs that did not begin")
  {
    request(lock, "a", "try");
    const std::string latest = "host=h\npid=1\nlatest=1\nauto=1";
    request(lock, "x", "latest", latest);
    request(lock, "y", "latest", latest);
    lock.eval(scripts_of(Plain{}).skip, "s", {info, "5"});
    lock.eval(scripts_of(Plain{}).skip, "s2", {info, "5"});
    lock.eval(scripts_of(Plain{}).skip, "c", {info, "0", "127"});
    CHECK(log_of(lock) == Words{"T|acquired|a|info|I", "T|replaced|x|by|" + latest,
                                "T|skipped|s2|info|I|waited|N|times|2|holder|a",
                                "T|skipped|c|info|I|waited|N|times|1|exit|127"});
  }
}

TEST_CASE("schema: a reader's entry has its mode")
{
  const ScriptedLock lock(Reader{});
  lock.eval(scripts_of(Reader{}).acquire, "a", {"a", "30000", info, "try", "0", "0"});
  CHECK(log_of(lock) == Words{"T|acquired|a|info|I|wish|read"});
}

SCRIPT_CASE("schema: the fields of a record are found at any place after the first")
{
  SUBCASE("a late renewal, of a job whose command names a lease")
  {
    request(lock, "a", "try", "host=h\nauto=1\ncommand=job lease=1\nlease=30000");
    lock.server.command({"PEXPIRE", "k", "5000"});
    lock.renew("a");
    CHECK(log_of(lock).back() == "T|renewed_late|a|left|N");
  }
  SUBCASE("a fixed lease is not renewed late")
  {
    request(lock, "a", "try", "host=h\nauto=0\nlabel=auto=1\nlease=30000\ncommand=x auto=1");
    lock.server.command({"PEXPIRE", "k", "5000"});
    lock.renew("a");
    CHECK(log_of(lock).size() == 1);
  }
  SUBCASE("--min-hold")
  {
    request(lock, "a", "try", "host=h\nauto=1\nlease=30000");
    CHECK(word(lock.release("a", "a", 5000)) == "released");
    CHECK(lock.hash("rlock:holder:{k}")["a"] == "host=h\nover=1\nauto=0\nlease=30000");
    CHECK(word(lock.ask("a")) == "broken");
  }
  SUBCASE("--latest")
  {
    const std::string ticket = "1";
    request(lock, "a", "try", "host=h\nauto=1\nlatest=1");
    const Reply late =
        lock.eval(scripts_of(Plain{}).acquire, "old", {"old", "30000", "host=h\nlatest=1", "latest", ticket, "0"});
    CHECK(word(late) == "replaced");
  }
}
