// SPDX-License-Identifier: Apache-2.0
// The files in packaging/recipes work as they are; stubs record the calls of other programs.
#include "cli/help/help.h"
#include "cli/verbs/dispatch.h"
#include "process/launch.h"
#include "support/integration.h"
#include "support/paths.h"
#include "support/recipe_fixture.h"
#include "support/skip.h"

#include <regex>

using namespace rlock::test;

namespace {

// Waits for all of them; all must succeed.
std::vector<std::string> outputs(std::vector<Process> all)
{
  std::vector<std::string> said;
  for (Process& one : all) {
    CHECK(one.wait(30s) == success);
    said.push_back(one.out());
  }
  return said;
}

}  // namespace

RECIPE_CASE("recipes: a deployment switches under the lock, and leaves it free")
{
  fixture.stub("build.sh");
  fixture.stub("upload.sh", "rlock status deploy:shop >/dev/null && echo held >>notes");
  fixture.stub("switch.sh", "rlock check && echo ours >>notes");
  CHECK(fixture.start({"./deploy.sh"}).wait(30s) == success);
  CHECK(fixture.notes() == "build.sh\nupload.sh\nheld\nswitch.sh\nours\n");
  CHECK(fixture.is_free("deploy:shop"));
}

RECIPE_CASE("recipes: a deployment that has lost the lock does not switch")
{
  fixture.stub("build.sh");
  fixture.stub("upload.sh", "trap '' TERM; rlock force-unlock deploy:shop --yes --now >/dev/null 2>&1; true");
  fixture.stub("switch.sh");
  CHECK(fixture.start({"./deploy.sh"}).wait(30s) != success);
  CHECK(fixture.notes() == "build.sh\nupload.sh\n");
}

RECIPE_CASE("recipes: of pods that start at once one migrates")
{
  fixture.stub("migrate-database.sh", "sleep 0.2");
  std::vector<Process> pods;
  for (int i = 0; i < 5; ++i) {
    pods.push_back(fixture.start({"./migrate.sh"}, {{"VERSION", "42"}}));
  }
  outputs(std::move(pods));
  CHECK(fixture.notes() == "migrate-database.sh\n");
}

RECIPE_CASE("recipes: a page is rebuilt once, and read by all")
{
  fs::create_directory(fixture.dir / "cache");
  fixture.stub("render.sh", "sleep 0.2; echo content >cache/new; mv cache/new \"cache/$1\"");
  std::vector<Process> readers;
  for (int i = 0; i < 10; ++i) {
    readers.push_back(fixture.start({"./rebuild-cache.sh", "home"}));
  }
  CHECK(outputs(std::move(readers)) == std::vector<std::string>(10, "content\n"));
  CHECK(fixture.notes() == "render.sh home\n");
}

RECIPE_CASE("recipes: a page that is evicted right after it was rendered is rendered again")
{
  fs::create_directory(fixture.dir / "cache");
  fixture.stub("render.sh", "echo content >cache/new; mv cache/new \"cache/$1\"");
  for (int i = 0; i < 3; ++i) {
    Process reader = fixture.start({"./rebuild-cache.sh", "home"});
    expect_end(reader, Exit{0}, {out_is("content\n")}, 30s);
    fs::remove(fixture.dir / "cache" / "home");
  }
  CHECK(fixture.notes() == "render.sh home\nrender.sh home\nrender.sh home\n");
}

RECIPE_CASE("recipes: stock in segments is sold from a segment of its own each")
{
  fixture.stub("take-one.sh", "sleep 0.1");
  std::vector<Process> customers;
  for (int i = 0; i < 10; ++i) {
    customers.push_back(fixture.start({"./sell.sh"}));
  }
  outputs(std::move(customers));
  const std::string notes = fixture.notes();
  CHECK(count(notes, "\n") == 10);
  CHECK(std::regex_match(notes, std::regex("(take-one\\.sh segment-[0-4]\n)+")));
}

RECIPE_CASE("recipes: each test has a phone of its own")
{
  std::ofstream(fixture.dir / "phones.txt") << "# in the lab\npixel-7\npixel-8\n";
  fixture.stub("test-on.sh", "rlock status phones >status.$1; rlock check && echo own >>notes");
  std::vector<Process> tests;
  for (int i = 0; i < 4; ++i) {
    tests.push_back(fixture.start({"./test-phones.sh"}));
  }
  outputs(std::move(tests));
  const std::string notes = fixture.notes();
  CHECK(count(notes, "test-on.sh pixel-") == 4);
  CHECK(count(notes, "own\n") == 4);
  for (const char* phone : {"pixel-7", "pixel-8"}) {
    const fs::path status = fixture.dir / (std::string("status.") + phone);
    CHECK((!fs::exists(status) || text_of(status).starts_with("phones: ")));
  }
}

TEST_CASE("recipes: a database refuses a late writer")
{
  skip_if(!find_command("sqlite3", "/usr/bin:/bin"), "sqlite3 is not installed");
  RecipeFixture fixture;
  const auto sql = [&](const std::string& statement) {
    Process database = fixture.start({"sqlite3", "bank.db", statement});
    CHECK(database.wait().code == 0);
    return database.out();
  };
  sql("CREATE TABLE account(id INTEGER, balance INTEGER, fence INTEGER); INSERT INTO account VALUES(7, 100, 0);");
  sql("CREATE TABLE booking(id TEXT PRIMARY KEY);");
  const auto book = [&](const char* booking) {
    return fixture.start({"bin/rlock", "run", "-k", "account:7", "--", "./fenced.sh", "7", "10", booking}).wait();
  };
  CHECK(book("first") == success);
  CHECK(sql("SELECT balance FROM account") == "90\n");

  Process late = fixture.start({"./fenced.sh", "7", "10", "late"}, {{"RLOCK_FENCE", "1"}});
  expect_end(late, exited(1), {err_is("a later holder was here: nothing is changed\n")});
  CHECK(sql("SELECT balance FROM account") == "90\n");

  CHECK_FALSE(book("first") == success);  // by a later holder
  CHECK(sql("SELECT balance FROM account") == "90\n");
  CHECK(book("second") == success);
  CHECK(sql("SELECT balance FROM account; SELECT id FROM booking ORDER BY id") == "80\nfirst\nsecond\n");
}

RECIPE_CASE("recipes: the lines of the crontab run their jobs")
{
  std::string expected;
  int entries = 0;
  for (const std::string& line : lines_of(text_of(fixture.dir / "crontab"))) {
    std::smatch entry;
    if (std::regex_match(line, entry, std::regex(R"((?:[0-9*/,]+\s+){5}(.*\./([a-z]+\.sh).*))"))) {
      ++entries;
      fixture.stub(entry[2]);
      CAPTURE(line);
      CHECK(fixture.start({"sh", "-c", entry[1]}).wait(30s) == success);
      expected += entry[2].str() + "\n";
    }
  }
  CHECK(entries == 4);
  CHECK(fixture.notes() == expected);
}

RECIPE_CASE("recipes: a job of the crontab that fails is a failure to cron, a busy one is none")
{
  std::ifstream crontab(fixture.dir / "crontab");
  int entries = 0;
  for (std::string line; std::getline(crontab, line);) {
    std::smatch entry;
    if (!std::regex_match(line, entry, std::regex(R"((?:[0-9*/,]+\s+){5}(.*\./([a-z]+\.sh).*))"))) {
      continue;
    }
    ++entries;
    CAPTURE(line);
    CHECK(line.find('%') == std::string::npos);  // in crontab(5) '%' ends the command
    fixture.stub(entry[2], "exit 3");
    CHECK(fixture.start({"sh", "-c", entry[1]}).wait(30s) == exited(3));
    if (has(entry[1].str(), " -n ")) {
      fixture.server.command({"FLUSHALL"});  // --min-hold keeps the lock
      fixture.stub(entry[2], "exec sleep 60");
      fs::remove(fixture.dir / "notes");
      Process holder = fixture.start({"sh", "-c", "exec " + entry[1].str()});
      wait_until([&] { return fs::exists(fixture.dir / "notes"); }, "the job runs", 30s);
      CHECK(fixture.start({"sh", "-c", entry[1]}).wait(30s) == success);
      holder.signal(SIGTERM);
      holder.wait(30s);
    }
  }
  CHECK(entries == 4);
}

RECIPE_CASE("recipes: the nightly service runs once a night, also where a host boots later")
{
  fixture.stub("nightly");
  std::smatch start;
  const std::string service = text_of(recipes / "nightly.service");
  REQUIRE(std::regex_search(service, start, std::regex("\nExecStart=/usr/bin/(rlock .* -- )/usr/local/bin/nightly\n")));
  for (int host = 0; host < 2; ++host) {
    CHECK(fixture.start({"sh", "-c", start[1].str() + "./nightly"}).wait(30s) == success);
  }
  CHECK(fixture.notes() == "nightly\n");
}

RECIPE_CASE("recipes: each --notify tells of a failure, and the ping of a success, too")
{
  fixture.stub("bin/mail", "cat >>notes");
  fixture.stub("bin/curl", "[ -t 0 ] || cat >>notes");
  std::ofstream(fixture.dir / "hook") << "https://chat.example.org/secret\n";
  const auto run = [&](const std::string& notify, const std::string& job) {
    fs::remove(fixture.dir / "notes");
    Process rlock =
        fixture.start({RLOCK_BINARY, "run", "-k", "nightly", "-n", "--notify", notify, "--", "sh", "-c", job});
    rlock.wait(30s);
    CHECK(rlock.err() == "");
    return fixture.notes();
  };
  CHECK(run("./notify-mail.sh ops@example.org", "true") == "");
  const std::string mail = run("./notify-mail.sh ops@example.org", "exit 3");
  CHECK(mail.starts_with("bin/mail -s nightly on "));
  expect_has(mail, {": failed ops@example.org\nnightly: failed with exit code 3 after ", "\nexit code 3, after 0 s\n"});

  CHECK(run("./notify-webhook.sh hook", "true") == "");
  const std::string post = run("./notify-webhook.sh hook", "exit 3");
  expect_has(post, {" -d {\"text\": \"", ": nightly failed: nightly: failed with exit code 3 after "});
  CHECK(post.ends_with("\"}\nurl = \"https://chat.example.org/secret\"\n"));

  CHECK(run("./notify-ping.sh https://hc.example.org/x", "true").ends_with(" https://hc.example.org/x\n"));
  CHECK(run("./notify-ping.sh https://hc.example.org/x", "exit 3").ends_with(" https://hc.example.org/x/fail\n"));
  Process holder = fixture.start({RLOCK_BINARY, "run", "-k", "nightly", "--", "sleep", "60"});
  wait_until([&] { return !fixture.is_free("nightly"); }, "it is held", 30s);
  fs::remove(fixture.dir / "notes");
  Process skipped = fixture.start({RLOCK_BINARY, "run", "-k", "nightly", "-n", "--notify",
                                   "./notify-ping.sh https://hc.example.org/x", "--", "true"});
  CHECK(skipped.wait(30s) == exited(75));
  CHECK(fixture.notes() == "");
}

RECIPE_CASE("recipes: a cancelled workflow of GitHub stops the job and releases the lock")
{
  fixture.stub("deploy.sh", "exec sleep 60");
  std::smatch run;
  const std::string workflow = text_of(recipes / "github-actions.yml");
  REQUIRE(std::regex_search(workflow, run, std::regex("- run: >-\n((?: {10}.*\n)+)")));
  std::ofstream(fixture.dir / "step.sh") << std::regex_replace(run[1].str(), std::regex("\n *(?!$)"), " ") << "\n";
  Process step = fixture.start(
      {"bash", "-e", "step.sh"},
      {{"GITHUB_SERVER_URL", "https://github.com"}, {"GITHUB_REPOSITORY", "a/b"}, {"GITHUB_RUN_ID", "7"}});
  wait_until([&] { return fs::exists(fixture.dir / "notes"); }, "the job runs", 30s);
  step.signal(SIGTERM);
  CHECK(step.wait(30s) == died_of(SIGTERM));
  wait_until([&] { return fixture.is_free("deploy:production"); }, "the lock is released", 5s);
}

TEST_CASE("recipes: what cannot run here names only options that there are")
{
  const std::string help = cli::help_of(cli::run_verb);
  int calls = 0;
  for (const auto& entry : fs::directory_iterator(recipes)) {
    std::string text = text_of(entry.path());
    text = std::regex_replace(text, std::regex("rlock, run, ([^\\]]*)"), "rlock run $1");  // as YAML lists it
    static const std::regex call("rlock run ([^#]*?) -- ");
    text = std::regex_replace(text, std::regex("[,\n] *"), " ");
    for (std::sregex_iterator each(text.begin(), text.end(), call), end; each != end; ++each) {
      ++calls;
      const std::string words = " " + (*each)[1].str() + " ";
      static const std::regex option(" (--?[a-zA-Z][a-z-]*)(?= )");
      for (std::sregex_iterator one(words.begin(), words.end(), option); one != end; ++one) {
        CHECK_MESSAGE(std::regex_search(help, std::regex("[ ,]" + (*one)[1].str() + "[ ,]")),
                      (*one)[1].str() << " in " << entry.path());
      }
    }
  }
  CHECK(calls >= 8);
}

TEST_CASE("recipes: systemd understands the service and the timer")
{
  skip_if(!find_command("systemd-analyze", "/usr/bin:/bin"), "there is no systemd-analyze here");
  const fs::path dir = make_temp_dir("units");
  std::string service = text_of(recipes / "nightly.service");
  for (const auto& [there, here] :
       {std::pair{"/usr/bin/rlock", RLOCK_BINARY}, std::pair{"/usr/local/bin/nightly", "/bin/true"}}) {
    const std::size_t at = service.find(there);
    REQUIRE(at != std::string::npos);
    service.replace(at, std::string_view(there).size(), here);
  }
  std::ofstream(dir / "nightly.service") << service;
  fs::copy(recipes / "nightly.timer", dir);
  fs::copy(recipes / "nightly-failed.service", dir);
  Process verify({"systemd-analyze", "verify", dir / "nightly.service", dir / "nightly.timer"});
  expect_end(verify, success, {err_is("")});
}
