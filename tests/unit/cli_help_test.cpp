// SPDX-License-Identifier: Apache-2.0
#include "cli/help/help.h"

#include "base/exit_code.h"
#include "cli/help/manual.h"
#include "cli/help/page.h"
#include "cli/options/option_table.h"
#include "cli/verbs/dispatch.h"
#include "stores/open.h"
#include "support/test.h"
#include "support/text_file.h"

#include <sstream>

using namespace rlock::test;

using namespace rlock::cli;

TEST_CASE("help: the overview names every verb and shows its first example")
{
  const std::string text = overview(all_verbs());
  for (const Verb* verb : all_verbs()) {
    CHECK(has(text, "\n  " + std::string(verb->name) + " "));
    CHECK(has(text, verb->summary));
    CHECK(has(text, *verb->examples.begin()));
  }
}

TEST_CASE("help: every verb has all its parts and fits a terminal")
{
  for (const Verb* verb : all_verbs()) {
    const std::string text = help_of(*verb);
    CAPTURE(text);
    CHECK(text.starts_with("rlock " + std::string(verb->name) + ": "));
    CHECK(has(text, "\nUsage: rlock " + std::string(verb->name) + " "));
    CHECK(has(text, "  -h                        show the options by name and exit\n"));
    CHECK(has(text, "  --help                    show this and exit\n"));
    CHECK(has(text, "\nExamples:\n  rlock " + std::string(verb->name)));
    CHECK(has(text, "\nExit codes:\n"));
    for (const std::string& line : lines_of(text)) {
      CHECK_MESSAGE(line.size() <= 80, line);
    }
  }
}

TEST_CASE("help: the name of each store leads to its URLs, an example and its manual page")
{
  struct Row {
    const char* name;
    const char* page;
    const char* url;
  };
  for (const Row& row : {
           Row{"redis", "rlock-redis", "redis://"},
           Row{"valkey", "rlock-redis", "redis://"},
           Row{"sentinel", "rlock-redis", "redis+sentinel://"},
           Row{"cluster", "rlock-redis", "redis+cluster://"},
           Row{"postgresql", "rlock-postgresql", "postgresql://"},
           Row{"postgres", "rlock-postgresql", "postgresql://"},
           Row{"mysql", "rlock-mysql", "mysql://"},
           Row{"mariadb", "rlock-mysql", "mariadb://"},
           Row{"mongodb", "rlock-mongodb", "mongodb://"},
           Row{"etcd", "rlock-etcd", "etcd://"},
           Row{"zookeeper", "rlock-zookeeper", "zookeeper://"},
           Row{"s3", "rlock-s3", "s3://"},
       }) {
    CAPTURE(row.name);
    const Engine* const store = engine_named(row.name);
    REQUIRE(store != nullptr);
    const std::string text = help_of_store(*store);
    CHECK(has(text, std::string(row.page) + "(7)"));
    CHECK(has(text, row.url));
    CHECK(has(help_of_servers(), row.url));
    CHECK(has(text, "\nDESCRIPTION\n    rlock run -S "));
    for (const std::string& line : lines_of(text)) {
      CHECK_MESSAGE(line.size() <= 80, line);
    }
  }
  CHECK(engine_named("") == nullptr);
  CHECK(engine_named("run") == nullptr);
}

TEST_CASE("help: a manual page as text has its words, options and lists")
{
  const std::string text = text_of_page(
      ".Sh NAME\n.Nm rlock-x\n.Sh DESCRIPTION\n.Bd -literal -offset indent -compact\nrlock run \\-\\- "
      "./job.sh\n.Ed\n.Pp\n"
      ".Ql local:\\&\nis one,\n.Nm rlock\nknows it\n.Pq Xr rlock 7 , No and Fl -sync Cm 1 .\n"
      "From\n.Pq Li least , most :\n"
      ".Sh LISTS\n.Bl -tag -width Ds\n.It Ql table= Ns Ar NAME\na table\n.El\nAfter the list.\n.Sh SEE ALSO\n.Xr a "
      "1\n");
  CHECK(text ==
        "\nDESCRIPTION\n    rlock run -- ./job.sh\n\n  local: is one, rlock knows it (rlock(7), and --sync 1). From "
        "(least, most):\n"
        "\nLISTS\n  table=NAME\n        a table\n  After the list.\n");
}

TEST_CASE("help: a manual page is named by the overview, found by its words, and no verb, topic or store has its words")
{
  CHECK(help_of_manual_page(*find_manual_page("cron")) == "see man rlock-recipes: recipes by task\n");
  CHECK(help_of_manual_page(*find_manual_page("promises")).starts_with("see man 7 rlock: "));
  CHECK(find_manual_page("rlock.toml") == find_manual_page("toml"));
  CHECK(find_manual_page("nosuch") == nullptr);
  CHECK(has(find_verb("interop").error().text, "(try rlock help interop)"));
  for (const ManualPage& page : all_manual_pages()) {
    CAPTURE(page.name);
    CHECK(has(overview(all_verbs()), page.summary));
    std::istringstream words{std::string(page.words)};
    for (std::string word; std::getline(words, word, ',');) {
      CHECK(find_manual_page(word) == &page);
      CHECK_FALSE(find_verb(word));
      CHECK(find_topic(word) == nullptr);
      CHECK(engine_named(word) == nullptr);
    }
  }
}

TEST_CASE("help: the overview names the stores, the limits and the recipes")
{
  const std::string text = overview(all_verbs());
  for (const char* part : {"rlock help STORE", "postgresql", "zookeeper", "man 7 rlock", "man rlock-recipes"}) {
    CHECK_MESSAGE(has(text, part), part);
  }
}

TEST_CASE("help: exits has each code, and the page of a verb only the codes that are its own")
{
  for (const ExitCodeRow& row : exit_codes) {
    CHECK(has(help_of_exits(), "\n  " + std::to_string(static_cast<int>(row.code)) + " "));
  }
  const std::string page = mdoc_of(status_verb);
  CHECK(has(page, "\n.It \\&1\n"));
  CHECK_FALSE(has(page, "\n.It \\&69\n"));
  CHECK(has(help_of(status_verb), "\n  69 "));
}

TEST_CASE("help: the synopsis of once and the text of --history say what they mean")
{
  CHECK(has(help_of(once_verb), "(--for DUR|--per PERIOD)"));
  CHECK(has(help_of(run_verb), "the server keeps the runs of"));
}

TEST_CASE("help: the options of run are those of the contract")
{
  const std::string text = help_of(run_verb);
  for (const char* option : {
           "\n  -k, --key KEY ",
           "\n  --prefix TEXT ",
           "\n  -n, --no-wait, --nonblock, --nb\n",
           "\n  -w, --wait, --timeout DUR\n",
           "\n  -E, --conflict-exit-code N\n",
           "\n  --lease auto|DUR ",
           "\n  --ttl DUR ",
           "\n  --min-hold DUR ",
           "\n  --max-runtime DUR ",
           "\n  --signal SIG ",
           "\n  --kill-after DUR ",
           "\n  --leftovers stop|wait|leave\n",
           "\n  --on-lost stop|warn ",
           "\n  --label TEXT ",
           "\n  -q, --quiet ",
           "\n  -v, --verbose ",
           "\nServer (see rlock help servers):\n  -S, --server URL|@NAME; --server-timeout DUR; ",
           "--password-file FILE; ",
       }) {
    CHECK_MESSAGE(has(text, option), option << " in\n" << text);
  }
}

TEST_CASE("help: flock has what a key can have of flock's options, and nothing else")
{
  const std::string text = help_of(flock_verb);
  for (const char* part : {
           "\nUsage: rlock flock [OPTION...] KEY (CMD [ARG...] | -c|--command STRING)\n",
           "\n  -s, --shared ",
           "\n  -x, -e, --exclusive ",
           "\n  -u, --unlock ",
           "\n  -n, --nb, --nonblock, --nonblocking\n",
           "\n  -w, --wait, --timeout SECS\n",
           "\n  -E, --conflict-exit-code N\n",
           "\n  -o, --close ",
           "\n  --verbose ",
           "\n  -V, --version ",
       }) {
    CHECK_MESSAGE(has(text, part), part << " in\n" << text);
  }
  CHECK_FALSE(has(text, "fcntl"));
  CHECK_FALSE(has(text, "no-fork"));
}

TEST_CASE("help: -h names the options, on fewer lines than --help describes them")
{
  for (const Verb* verb : all_verbs()) {
    const std::string brief = brief_help_of(*verb);
    const std::string whole = help_of(*verb);
    CAPTURE(brief);
    CHECK(has(brief, "\nUsage: rlock " + std::string(verb->name) + " "));
    CHECK(has(brief, " --help"));
    CHECK(has(brief, "rlock help " + std::string(verb->name) + " describes the options."));
    CHECK(count(brief, "\n") < count(whole, "\n"));
    for (const std::string& line : lines_of(brief)) {
      CHECK_MESSAGE(line.size() <= 80, line);
    }
  }
}

TEST_CASE("help: the options of the server are described once, under servers")
{
  const std::string servers = help_of_servers();
  for (const char* part : {"\n  -S, --server URL|@NAME ", "\n  --server-timeout DUR ", "\n  --password-file FILE",
                           "\n  --cacert FILE ", "redis+sentinel://", "local:", "host:port"}) {
    CHECK_MESSAGE(has(servers, part), part << " in\n" << servers);
  }
  for (const std::string& line : lines_of(servers)) {
    CHECK_MESSAGE(line.size() <= 80, line);
  }
  for (const Verb* verb : all_verbs()) {
    const std::string text = help_of(*verb);
    CHECK_FALSE(has(text, "RLOCK_CACERT"));
    CHECK(has(text, "--server URL") == has(text, "(see rlock help servers)"));
  }
  CHECK(has(overview(all_verbs()), "rlock help servers"));
}

TEST_CASE("help: what is for every kind of server does not speak of Redis alone")
{
  CHECK_FALSE(has(overview(all_verbs()).substr(0, 200), "on Redis"));
  for (const Verb* verb : all_verbs()) {
    CAPTURE(verb->name);
    CHECK_FALSE(has(help_of(*verb), "which is the Redis key"));
  }
  CHECK(has(help_of(**find_verb("acl")),
            "\nUsage: rlock acl [OPTION...] [-k] GLOB\n       rlock acl -S URL [--user NAME]\n"));
  CHECK(has(brief_help_of(**find_verb("acl")), "\n       rlock acl -S URL [--user NAME]\n"));
}

TEST_CASE("suggestions: only for a word that is near or that has one completion")
{
  const std::vector<std::string> known{"--cert", "--cacert", "--server", "--json", "--output", "--sort"};
  const auto meant = [&](std::string_view typed) { return did_you_mean(typed, known, "no"); };
  CHECK(meant("--port") == "no");
  CHECK(did_you_mean("--sort", std::vector<std::string>{"--cert", "--server"}, "no") == "no");
  CHECK(meant("--crt") == " (did you mean '--cert'?)");
  CHECK(meant("--sevrer") == " (did you mean '--server'?)");
  CHECK(meant("--jsno") == " (did you mean '--json'?)");
  CHECK(meant("--out") == " (did you mean '--output'?)");
  CHECK(meant("--s") == "no");
  CHECK(meant("-") == "no");
  CHECK(meant("--") == "no");
  CHECK(meant("") == "no");
}

TEST_CASE("help: wait has the wait options of run, and says that it takes nothing")
{
  const std::string text = help_of(wait_verb);
  for (const char* part : {
           "rlock wait: wait until a lock is free, without taking it\n",
           "\n  -k, --key KEY ",
           "\n  -n, --no-wait, --nonblock, --nb\n",
           "\n  -w, --wait, --timeout DUR\n",
           "\n  -q, --quiet ",
           "\n  -S, --server URL|@NAME; ",
           "\n  0             the lock was free a moment ago",
           "\n  75            the lock is busy, and the time to wait is over\n",
       }) {
    CHECK_MESSAGE(has(text, part), part << " in\n" << text);
  }
  CHECK(*find_verb("wait") == &wait_verb);
}

TEST_CASE("help: -q says that a busy lock is told by the exit code alone")
{
  for (const Verb* verb : {&run_verb, &once_verb, &acquire_verb, &freeze_verb}) {
    OptionTable table(verb->name);
    const VerbAction action = add_verb_options(*verb, table);
    CHECK_MESSAGE(has(table.find("-q")->help.str(), "the exit code alone says that the lock is busy"), verb->name);
  }
}

TEST_CASE("verbs: a slip of the hand is met with a suggestion, anything else with the list")
{
  CHECK(*find_verb("run") == &run_verb);
  CHECK(find_verb("stauts").error().text == "unknown verb 'stauts' (did you mean 'status'?)");
  CHECK(find_verb("stat").error().text == "unknown verb 'stat' (did you mean 'status'?)");
  CHECK(find_verb("ls").error().text == "unknown verb 'ls' (did you mean 'list'?)");
  CHECK(find_verb("./job.sh").error().text ==
        "unknown verb './job.sh' (to run a command: rlock run -k KEY -- ./job.sh)");
  CHECK(find_verb("seize").error().text == "unknown verb 'seize' (rlock help lists them)");
  CHECK(find_verb("").error().text == "unknown verb '' (rlock help lists them)");
  CHECK(find_verb(std::string(100'000, 'r')).error().code == ErrorCode::usage);
}
