// SPDX-License-Identifier: Apache-2.0
// What rlock 0.1 has left on a server is read as it was meant, and what is written today has the same bytes.
#include "lock/event_log.h"
#include "lock/past_run.h"
#include "lock/schema.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <vector>

using namespace rlock;

namespace {

const std::string record_a =
    "history=86400000\nhost=vm\npid=25197\nuser=root\ncommand=sh -c "
    "'a%25'\nlabel=a%0Ab\nsince=1795501763224\nlease=30000\n"
    "kill_after=7000\nlatest=1\nauto=1";
const std::string record_b = "host=vm\npid=7\nuser=bob\ncommand=true\nlabel=\nsince=1795501763956\nlease=5000\nauto=0";

// As `redis-cli lrange` showed them, with shorter owners, and "|" for NUL.
const std::vector<std::string> entries_of_0_1{
    "1795501763000000|acquired|a|info|" + record_a,
    "1795501763.100000|skipped|s|info|" + record_b + "|waited|1|times|2|holder|a",
    "1795501764000000|released|a|owner|a|exit|3|fence|1795501763000000|to|b|info|" + record_b + "|waited|396",
    "1795501764.100000|confirmed|b",
    "1795501764.200000|renewed_late|b|left|900",
    "1795501764.300000|asked|b|by|root@vm (pid 9)",
    "1795501765.000000|released|b|owner|b|exit|121|outcome|forced|fence|1795501764000000",
    "1795501766000000|acquired|c|info|" + record_b + "|wish|write",
    "1795501766.100000|released|n|owner|c|exit|0|left|1",
    "1795501766.200000|forced|c|by|root@vm (pid 9)",
    "1795501767000000|acquired|d|info|" + record_a + "|waited|20|claim|yes",
    "1795501768000000|acquired|e|info|" + record_a,
    "1795501768.500000|lost|d|what|held|by||holder|e",
    "1795501769.000000|lost|e|what|none|by||holder||info|" + record_a + "|outcome|lost|fence|1795501768000000",
    "1795501770000000|acquired|f|info|" + record_a,
    "1795501770.000100|released|f|owner|f|outcome|unused",
    "1795501770.000200|lost|f|what|string|by||holder||outcome|unused",
    "1795501770.000300|unused|f",
    "1795501771.000000|replaced|g|by|" + record_b,
    "1795501772.000000|skipped|h|info|" + record_b + "|waited|0|times|1|exit|127",
    "1795501773000000|acquired|i|info|" + record_a,
    "1795501774.000000|released|i|owner|i|exit|124|outcome|timed_out|fence|1795501773000000",
};

std::vector<EventLogEntry> read(std::vector<std::string> texts)
{
  std::vector<EventLogEntry> entries;
  for (std::string& text : texts) {
    std::ranges::replace(text, '|', '\0');
    entries.push_back(EventLogEntry::of(std::move(text)));
  }
  return entries;
}

std::string text_or_none(std::optional<std::int64_t> number) { return number ? " " + std::to_string(*number) : ""; }

}  // namespace

TEST_CASE("schema: no word occurs twice in a table, and each is found")
{
  const auto check = [](const auto& rows) {
    std::set<std::string_view> words;
    for (const auto& [value, word] : rows) {
      CHECK(words.insert(word).second);
      CHECK(find_word(rows, word) == value);
      CHECK(word_of(rows, value) == word);
    }
    CHECK_FALSE(find_word(rows, "of-a-later-version"));
  };
  check(holder_fields);
  check(event_kinds);
  check(event_words);
  check(losses);
  check(endings);
}

TEST_CASE("schema: a record of rlock 0.1 is read, and written again in the same bytes")
{
  const auto info = decode_holder(record_a);
  REQUIRE(info);
  CHECK(info->history == Millis{86'400'000});
  CHECK(info->host == "vm");
  CHECK(info->pid == 25197);
  CHECK(info->user == "root");
  CHECK(info->command == "sh -c 'a%'");
  CHECK(info->label == "a\nb");
  CHECK(info->since_ms == 1'795'501'763'224);
  CHECK(info->lease == Millis{30'000});
  CHECK(info->kill_after == Millis{7000});
  CHECK(info->latest);
  CHECK(info->automatic);
  CHECK(encode(*info) == record_a);
  CHECK(encode(*decode_holder(record_b)) == record_b);

  std::string kept = record_b;  // by --min-hold
  kept.replace(kept.find("auto=0"), 6, "over=1\nauto=0");
  CHECK_FALSE(decode_holder(kept)->automatic);
  CHECK(decode_holder(kept)->over);
  CHECK(encode(*decode_holder(kept)) == kept);
}

TEST_CASE("schema: the events of entries of rlock 0.1")
{
  EventLogReader reader;
  std::string told;
  for (const LockEvent& event : reader.read(read(entries_of_0_1))) {
    told += std::string(name_of(event.what)) + " " + event.owner.text() + text_or_none(event.exit_code) +
            (event.info ? " " + event.info->user : "") + (event.by.empty() ? "" : " by " + event.by) +
            (event.from.empty() ? "" : " from " + event.from) +
            (event.left > Millis{0} ? text_or_none(event.left.count()) : "") +
            (event.times > 1 ? text_or_none(event.times) : "") + "\n";
  }
  CHECK(told ==
        "acquired a root\n"
        "skipped s bob by root@vm (pid 25197) 2\n"
        "handed_over b 3 bob from a\n"
        "renewed_late b bob 900\n"
        "released b 121 bob by root@vm (pid 9)\n"
        "acquired c bob\n"
        "forced c bob by root@vm (pid 9)\n"
        "acquired d root\n"
        "expired d root\n"
        "acquired e root\n"
        "lost d root by root@vm (pid 25197)\n"
        "lost e root\n"
        "acquired f root\n"
        "released f root\n"
        "lost f\n"
        "skipped h 127 bob\n"
        "acquired i root\n"
        "released i 124 root\n");
  CHECK_FALSE(reader.holder());
}

TEST_CASE("schema: the runs of entries of rlock 0.1")
{
  std::string told;
  for (const PastRun& run : past_runs(
           read(entries_of_0_1), [](const Owner&) { return false; }, 1'795'501'780'000)) {
    told += run.owner.text() + " " + std::string(run.outcome ? name_of(*run.outcome) : "-") +
            text_or_none(run.exit_code) + " for" + text_or_none(run.duration ? run.duration->count() : -1) +
            (run.waited > Millis{0} ? " waited" + text_or_none(run.waited.count()) : "") +
            (run.times > 1 ? " times" + text_or_none(run.times) : "") + "\n";
  }
  CHECK(told ==
        "i timed_out 124 for 1000\n"
        "h failed 127 for 0\n"
        "e lost for 1000\n"
        "d lost for 1000 waited 20\n"
        "c forced for 200\n"
        "b forced 121 for 1000 waited 396\n"
        "s skipped for 1 times 2\n"
        "a failed 3 for 1000\n");
}
