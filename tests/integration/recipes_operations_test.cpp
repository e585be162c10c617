// SPDX-License-Identifier: Apache-2.0
// Recipes of packaging/recipes in which several runs meet: leaders, freezes, containers, CI systems.
#include "base/duration.h"
#include "process/launch.h"
#include "support/integration.h"
#include "support/recipe_fixture.h"
#include "support/skip.h"

#include <regex>

using namespace rlock::test;

namespace {

void await_lines(const RecipeFixture& fixture, std::size_t jobs)
{
  wait_until([&] { return count(fixture.notes(), "\n") >= jobs; }, "so many jobs have begun");
}

// The text of the only group of `pattern` in a recipe, with the words of a folded scalar in one line.
std::string part_of(const std::string& recipe, const std::string& pattern)
{
  const std::string text = text_of(recipes / recipe);
  std::smatch found;
  REQUIRE_MESSAGE(std::regex_search(text, found, std::regex(pattern)), recipe);
  return std::regex_replace(found[1].str(), std::regex("\n +(?=[^ ])"), " ");
}

// The preview of an older commit is in progress, that of the next one waits, and the newest replaces both.
void check_preview(const std::string& line, const std::map<std::string, std::optional<std::string>>& variables)
{
  RecipeFixture fixture;
  fixture.stub("preview.sh", "test \"$COMMIT\" = new || exec sleep 1000");
  const auto start = [&](const std::string& commit) {
    auto env = variables;
    env["COMMIT"] = commit;
    return fixture.start({"bash", "-ec", line}, env);
  };
  Process old = start("old");
  await_lines(fixture, 1);
  Process newest = start("new");
  CHECK(newest.wait(60s) == success);
  expect_end(old, exited(121), {err_has("force-unlocked by ")}, 60s);
  CHECK(fixture.notes() == "preview.sh\npreview.sh\n");
}

}  // namespace

RECIPE_CASE("recipes: of the hosts with the leader service one leads, and another one takes over")
{
  fixture.stub("lead", "exec sleep 1000");
  const std::string command = part_of("leader.service", "\nExecStart=/usr/bin/(rlock .* -- )/usr/local/bin/lead\n");
  const auto start = [&] { return fixture.start({"sh", "-c", "exec " + command + "./lead"}); };
  Process first = start();
  await_lines(fixture, 1);
  Process second = start();
  wait_until([&] { return as_int(fixture.server.command({"EXISTS", "rlock:queue:{leader:api}"})) == 1; }, "it waits");
  first.signal(SIGKILL);
  await_lines(fixture, 2);
  Process again = start();  // as systemd does
  wait_until([&] { return as_int(fixture.server.command({"EXISTS", "rlock:queue:{leader:api}"})) == 1; }, "it waits");
  CHECK(fixture.start({"bin/rlock", "force-unlock", "leader:api", "--yes"}).wait(60s) == success);
  CHECK(second.wait(60s) == exited(121));
  await_lines(fixture, 3);
  again.signal(SIGTERM);
  CHECK(again.wait(60s) == died_of(SIGTERM));
  CHECK(fixture.is_free("leader:api"));
}

TEST_CASE("recipes: systemd understands the leader service")
{
  skip_if(!find_command("systemd-analyze", "/usr/bin:/bin"), "there is no systemd-analyze here");
  const fs::path dir = make_temp_dir("units");
  std::string service = text_of(recipes / "leader.service");
  service = std::regex_replace(service, std::regex("/usr/bin/rlock"), RLOCK_BINARY);
  service = std::regex_replace(service, std::regex("/usr/local/bin/lead\n"), "/bin/true\n");
  std::ofstream(dir / "leader.service") << service;
  Process verify({"systemd-analyze", "verify", dir / "leader.service"});
  expect_end(verify, success, {err_is("")}, 30s);
}

RECIPE_CASE("recipes: no job starts during maintenance")
{
  const std::string key = "deploy:production";
  const auto run = [&](const Words& options) {
    return fixture.start(joined(joined({"bin/rlock", "run", "-k", key}, options), {"--", "true"}));
  };
  CHECK(run({}).wait(30s) == success);
  const std::string work =
      "rlock status " + key + "; rlock run -n -k " + key + " -- true; test $? = 75 || exit 9; exit 5";
  Process maintenance = fixture.start({"./freeze.sh", "deploy:*", "database upgrade", "sh", "-c", work});
  expect_end(maintenance, exited(5),
             {out_has(key + ": frozen by "), err_has(": database upgrade"), out_has(key + " is thawed")}, 30s);
  CHECK(run({"-n"}).wait(30s) == success);

  const std::string wait = "until [ -e ended ]; do sleep 0.05; done; exit 1";
  Process ended = fixture.start({"./freeze.sh", key, "database upgrade", "sh", "-c", wait});
  wait_until([&] { return has(ended.out(), " is frozen by "); }, "it is frozen");
  Process waiter = run({});
  wait_until([&] { return as_int(fixture.server.command({"EXISTS", "rlock:queue:{" + key + "}"})) == 1; }, "it waits");
  std::ofstream(fixture.dir / "ended") << "";
  CHECK(ended.wait(30s) == exited(1));
  CHECK(waiter.wait(30s) == success);
}

RECIPE_CASE("recipes: in the morning, what failed and which job is late")
{
  const auto told = [&](const Words& words) {
    Process asked = fixture.start(words, {{"PATH", (fixture.dir / "bin").string() + ":/usr/bin:/bin"}});
    const int code = asked.wait(30s).code;
    return std::to_string(code) + " " + asked.out();
  };
  CHECK(told({"./last-night.sh"}) == "0 ");
  CHECK(told({"./check-overdue.sh"}) ==
        "3 UNKNOWN: rlock: the server knows no lock with --every: nothing was checked\n");
  CHECK(told({"./check-overdue.sh", "nightly"})
            .starts_with("2 CRITICAL: a job is late, or the server does not know it\n"));
  fixture.start({"bin/rlock", "run", "-k", "nightly", "--every", "1s", "--", "false"}).wait(30s);
  CHECK(has(told({"./last-night.sh"}), " failed "));
  const std::string late = "2 CRITICAL: a job is late, or the server does not know it\nKEY ";
  wait_until([&] { return told({"./check-overdue.sh"}).starts_with(late); }, "the job is late");
  CHECK(told({"./check-overdue.sh", "nightly"}).starts_with(late));
}

RECIPE_CASE("recipes: cron mails the output of a job that fails, and nothing else")
{
  const auto run = [&](const std::string& job) {
    Process cron = fixture.start({"./cron-quietly.sh", "nightly", "sh", "-c", job}, {{"TMPDIR", fixture.dir.string()}});
    const int code = cron.wait(30s).code;
    return std::to_string(code) + " " + cron.out() + cron.err();
  };
  CHECK(run("echo output; echo error >&2") == "0 ");
  CHECK(run("echo output; exit 3") == "3 output\nnightly ended with exit code 3\n");
  fixture.stub("hold", "exec sleep 1000");
  Process holder = fixture.start({"bin/rlock", "run", "-k", "nightly", "--", "./hold"});
  await_lines(fixture, 1);
  CHECK(run("echo output") == "0 ");
}

RECIPE_CASE("recipes: the quiet job of cron is stopped with its script")
{
  fixture.stub("nightly", "echo output; exec sleep 1000");
  Process cron = fixture.start({"./cron-quietly.sh", "nightly", "./nightly"}, {{"TMPDIR", fixture.dir.string()}});
  await_lines(fixture, 1);
  cron.signal(SIGTERM);
  CHECK(cron.wait(30s) == exited(143));
  CHECK(fixture.is_free("nightly"));
  CHECK(cron.out() == "output\nnightly ended with exit code 143\n");
}

RECIPE_CASE("recipes: of several containers one works, and TERM stops it")
{
  fixture.stub("worker", "exec sleep 1000");
  const auto start = [&] { return fixture.start({"./entrypoint.sh", "./worker", "--all"}, {{"JOB_NAME", "worker"}}); };
  Process first = start();
  await_lines(fixture, 1);
  Process second = start();
  wait_until([&] { return as_int(fixture.server.command({"EXISTS", "rlock:queue:{worker}"})) == 1; }, "it waits");
  first.signal(SIGTERM);
  CHECK(first.wait(60s) == died_of(SIGTERM));
  await_lines(fixture, 2);
  second.signal(SIGTERM);
  CHECK(second.wait(60s) == died_of(SIGTERM));
  CHECK(fixture.notes() == "worker --all\nworker --all\n");
}

RECIPE_CASE("recipes: a container's worker that ignores TERM is killed, and the lock is free")
{
  fixture.stub("worker", "trap '' TERM\necho deaf >>notes\nwhile :; do sleep 0.05; done");
  Process rlock = fixture.start({"./entrypoint.sh", "./worker"}, {{"JOB_NAME", "worker"}, {"JOB_KILL_AFTER", "300ms"}});
  await_lines(fixture, 2);
  rlock.signal(SIGTERM);
  CHECK(rlock.wait(60s) == died_of(SIGKILL));
  CHECK(fixture.is_free("worker"));
}

TEST_CASE("recipes: --kill-after leaves rlock time to release before its manager kills it")
{
  struct Recipe {
    const char* file;
    const char* kill_after;
    const char* limit;  // how long the manager waits between its signal and KILL
  };
  const std::string option = R"(--kill-after"?,? "?([0-9]+[a-z]+))";
  const Recipe all[] = {
      {"entrypoint.sh", "KILL_AFTER:-([0-9]+[a-z]+)", "KILL after ([0-9]+) s"},
      {"kubernetes-cronjob.yaml", option.c_str(), "terminationGracePeriodSeconds: ([0-9]+)"},
      {"nomad.hcl", option.c_str(), "kill_timeout = \"([0-9]+)s"},
      {"leader.service", option.c_str(), "TimeoutStopSec=([0-9]+)"},
      {"nightly.service", option.c_str(), "TimeoutStopSec=([0-9]+)"},
      {"Jenkinsfile", option.c_str(), "KILL ([0-9]+) s"},
  };
  for (const Recipe& recipe : all) {
    CAPTURE(recipe.file);
    const auto kill_after = parse_duration(part_of(recipe.file, recipe.kill_after));
    const auto limit = parse_duration(part_of(recipe.file, recipe.limit));
    REQUIRE((kill_after && limit));
    CHECK(*kill_after + 2s <= *limit);
  }
}

RECIPE_CASE("recipes: the commands of the playbook take, check and release the lock")
{
  const std::string playbook = text_of(recipes / "ansible.yml");
  std::vector<std::string> commands;
  static const std::regex command("cmd: (rlock .*)\n");
  for (std::sregex_iterator each(playbook.begin(), playbook.end(), command), end; each != end; ++each) {
    commands.push_back((*each)[1]);
  }
  REQUIRE(commands.size() == 3);
  std::string token;
  for (std::string each : commands) {
    each = std::regex_replace(each, std::regex("\\{\\{ lock \\}\\}"), "deploy:production");
    each = std::regex_replace(each, std::regex("\\{\\{ taken.stdout \\}\\}"), token);
    each = std::regex_replace(each, std::regex("\\{\\{ inventory_hostname \\}\\}"), "web1");
    CAPTURE(each);
    Process step = fixture.start({"sh", "-c", each});
    CHECK(step.wait(30s) == success);
    token = token.empty() ? step.out().substr(0, step.out().find('\n')) : token;
  }
  CHECK(fixture.is_free("deploy:production"));
}

RECIPE_CASE("recipes: the task of Nomad runs its job")
{
  fixture.stub("nightly");
  std::string list = part_of("nomad.hcl", "args +=\\s*\\[(.*)\\]");
  list = std::regex_replace(list, std::regex("/usr/local/bin/nightly"), "./nightly");
  std::vector<std::string> words{"bin/rlock"};
  static const std::regex word("\"([^\"]*)\"");
  for (std::sregex_iterator each(list.begin(), list.end(), word), end; each != end; ++each) {
    words.push_back((*each)[1]);
  }
  CHECK(fixture.start(words).wait(30s) == success);
  CHECK(fixture.start(words).wait(30s) == success);  // --min-hold: skipped
  CHECK(fixture.notes() == "nightly\n");
}

TEST_CASE("recipes: the preview of a newer commit replaces an older one, on GitHub and on GitLab")
{
  const std::string github = part_of("github-actions.yml", "- run: >-\n((?: {10}.*\n)+)$");
  check_preview(github, {{"GITHUB_SERVER_URL", "https://github.com"},
                         {"GITHUB_REPOSITORY", "a/b"},
                         {"GITHUB_REF_NAME", "feature"},
                         {"GITHUB_RUN_ID", "7"}});
  const std::string gitlab = part_of("gitlab-ci.yml", "- (rlock run .*preview.*)\n");
  check_preview(gitlab, {{"CI_PROJECT_PATH", "a/b"}, {"CI_COMMIT_REF_SLUG", "feature"}, {"CI_JOB_URL", "https://x/7"}});
}
