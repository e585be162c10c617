// SPDX-License-Identifier: Apache-2.0
// packaging/action.yml and the templates, with files that look like a release, and packaging/demo. packaging/release.sh itself
// tries its files.
#include "cli/help/help.h"
#include "cli/verbs/dispatch.h"
#include "support/integration.h"
#include "support/release_fixture.h"

#include <regex>

using namespace rlock::test;

namespace {

namespace fs = std::filesystem;

// The script of the step of that name in action.yml, without its indentation.
std::string step_script(const std::string& name)
{
  const std::string action = text_of(packaging / "action.yml");
  const std::size_t step = action.find("- name: " + name + "\n");
  REQUIRE(step != std::string::npos);
  const std::string head = "      run: |\n";
  const std::size_t begin = action.find(head, step) + head.size();
  const std::size_t end = action.find("\n    - name:", begin);
  return std::regex_replace(action.substr(begin, end - begin), std::regex("(^|\n)        "), "$1");
}

}  // namespace

RELEASE_CASE("action: finds the release of the tag that the workflow names")
{
  const ReleaseServer server(release, "/shop/rlock/releases/download/v0.1.0/");
  release.only_with({"curl"});
  const std::map<std::string, std::optional<std::string>> env{
      {"RLOCK_FROM", ""},
      {"RLOCK_ACTION_REPOSITORY", "shop/rlock"},
      {"RLOCK_ACTION_REF", "v0.1.0"},
      {"GITHUB_ACTION_PATH", release.installer().parent_path().string()},
      {"GITHUB_SERVER_URL", server.address()},
      {"GITHUB_PATH", (release.dir / "path").string()},
      {"RUNNER_TEMP", (release.dir / "temp").string()}};
  const std::string step = "set -e\n" + step_script("Install rlock");
  rlock::test::Process installer = release.sh(step, env);
  CHECK_MESSAGE(installer.wait(30s) == Exit{0}, installer.err());
  CHECK(text_of(release.dir / "path") == (release.dir / "temp/rlock/bin\n").string());
  CHECK(fs::exists(release.dir / "temp/rlock/bin/rlock"));

  fs::remove_all(release.dir / "path");
  auto other = env;
  other["RLOCK_ACTION_REF"] = "v0.2.0";
  rlock::test::Process missing = release.sh(step, other);
  expect_end(missing, exited(1), {err_has("cannot get SHA256SUMS from " + server.address())}, 30s);
  CHECK(!fs::exists(release.dir / "path"));
}

RELEASE_CASE("action: installs rlock, and runs commands under the lock with the inputs")
{
  const RedisServer server;
  fs::create_directory(release.dir / "temp");
  const std::map<std::string, std::optional<std::string>> env{
      {"RLOCK_FROM", "files"},
      {"GITHUB_ACTION_PATH", release.installer().parent_path().string()},
      {"RUNNER_TEMP", (release.dir / "temp").string()},
      {"GITHUB_PATH", (release.dir / "path").string()},
      {"GITHUB_SERVER_URL", "https://git.test"},
      {"GITHUB_REPOSITORY", "shop/web"},
      {"GITHUB_RUN_ID", "7"},
      {"RLOCK_RUN", "false | true\necho never"},
      {"RLOCK_LOCK", "deploy:shop"},
      {"RLOCK_URL", server.url()},
      {"RLOCK_WAIT", "10s"},
      {"RLOCK_MAX_RUNTIME", "1h"},
      {"RLOCK_OPTIONS", "--ttl 20s -v"}};
  CHECK(release.sh("set -e\n" + step_script("Install rlock"), env).wait(30s) == success);
  const std::string path = text_of(release.dir / "path");
  CHECK(path == (release.dir / "temp/rlock/bin\n").string());

  const std::string run =
      "PATH=" + path.substr(0, path.size() - 1) + ":$PATH; set -e\n" + step_script("Run under the lock");
  rlock::test::Process failing = release.sh(run, env);
  CHECK_MESSAGE(failing.wait(30s) == Exit{1}, failing.err());  // pipefail and -e hold
  CHECK(failing.out().empty());

  auto working_env = env;
  working_env["RLOCK_RUN"] =
      "set -u; rlock check -S \"$RLOCK_TEST_URL\"; echo \"$RLOCK_KEY ${RLOCK_RUN-unset}\"\n"
      "rlock status -S \"$RLOCK_TEST_URL\" deploy:shop | grep label";
  working_env["RLOCK_TEST_URL"] = server.url();
  rlock::test::Process working = release.sh(run, working_env);
  expect_end(working, Exit{0}, {out_has("deploy:shop unset\n"), out_has("https://git.test/shop/web/actions/runs/7\n")},
             30s);
}

RELEASE_CASE("action: without a release it says what to give")
{
  rlock::test::Process step =
      release.sh(step_script("Install rlock"),
                 {{"RLOCK_FROM", ""}, {"RLOCK_ACTION_REPOSITORY", "shop/rlock"}, {"RLOCK_ACTION_REF", "main"}});
  expect_end(step, exited(64), {out_has("name a release tag")}, 30s);
}

RELEASE_CASE("action, templates and workflows: they are YAML, and name options and files that exist")
{
  if (release.sh("python3 -c 'import yaml'").wait(30s) == success) {
    CHECK(release
              .sh("cd " + packaging.string() +
                  " && for file in action.yml gitlab-template.yml ../.gitlab-ci.yml "
                  "../.github/workflows/*.yml; do python3 -c 'import sys, yaml; assert "
                  "len(yaml.safe_load(open(sys.argv[1]))) "
                  "> 0' $file || exit 1; done")
              .wait(30s) == success);
  }
  const std::string help = cli::help_of(**cli::find_verb("run"));
  const std::string text = text_of(packaging / "action.yml") + text_of(packaging / "gitlab-template.yml");
  const std::regex option("(?:set --|rlock run).* (--?[a-zA-Z-]+)[ \"=]");
  int options = 0;
  for (std::string line, rest = text; !rest.empty();) {
    line = rest.substr(0, rest.find('\n'));
    rest.erase(0, line.size() + 1);  // the comments of YAML are searched too
    if (has(line, "rlock run ")) {
      line = line.substr(0, line.rfind(" -- "));  // what follows are the options of the job
    }
    for (std::smatch match; std::regex_search(line, match, option);
         line.erase(static_cast<std::size_t>(match.position(1)))) {
      const std::string name = match[1];
      if (name == "--") {
        continue;
      }
      ++options;
      CHECK_MESSAGE(std::regex_search(help, std::regex("[ ,]" + name + "[ ,;\n]")), name);
    }
  }
  CHECK(options >= 6);
  for (const char* file : {"install.sh", "release.sh", "action.yml", "../.ci/run"}) {
    CHECK_MESSAGE(fs::exists(packaging / file), file);
  }
}

RELEASE_CASE("demo: the picture of watch is recorded from a real session")
{
  if (release.sh("python3 -c '' && unshare --uts $([ $(id -u) = 0 ] || echo --user --map-root-user) true").wait(30s) !=
      Exit{0}) {
    skip("python3, and root or user namespaces");
  }
  rlock::test::Process recording =
      release.sh("python3 " + (packaging / "demo" / "record.py").string() + " --to . " + RLOCK_BINARY + " watch");
  CHECK_MESSAGE(recording.wait(100s) == Exit{0}, recording.err());
  const std::string picture = text_of(release.dir / "watch.svg");
  for (const char* text : {">rlock watch<", "billing:42", "root@web1 (pid ", "root@web3 (pid "}) {
    CHECK_MESSAGE(has(picture, text), text);
  }
}

RELEASE_CASE("release: the address and the registry are those of the fork that makes it")
{
  struct Row {
    const char* setting;
    const char* expected;
  };
  for (const Row& row : {
           Row{"GITHUB_REPOSITORY=Shop/rlock", "https://github.com/Shop/rlock ghcr.io/shop/rlock"},
           Row{"CI_PROJECT_URL=https://gitlab.test/shop/rlock; CI_REGISTRY_IMAGE=registry.test/shop/rlock",
               "https://gitlab.test/shop/rlock registry.test/shop/rlock"},
           Row{"origin=git@github.com:shop/rlock.git", "https://github.com/shop/rlock ghcr.io/shop/rlock"},
           Row{"origin=ssh://git@git.test/shop/rlock.git", "https://git.test/shop/rlock localhost:5000/rlock"},
           Row{"origin=https://git.test/shop/rlock.git", "https://git.test/shop/rlock localhost:5000/rlock"},
           Row{"RLOCK_HOME=https://a.test/b; RLOCK_REGISTRY=c.test/d", "https://a.test/b c.test/d"},
       }) {
    CAPTURE(row.setting);
    // git is a function, so that no configuration of this machine matters.
    rlock::test::Process shell = release.sh(
        "unset GITHUB_REPOSITORY GITHUB_SERVER_URL CI_PROJECT_URL CI_REGISTRY_IMAGE RLOCK_HOME RLOCK_REGISTRY; " +
        std::string(row.setting) + "; git() { echo \"$origin\"; }; . " + (packaging / "release/project.sh").string() +
        "; echo \"$RLOCK_HOME $RLOCK_REGISTRY\"");
    expect_end(shell, success, {out_is(std::string(row.expected) + "\n")}, 30s);
  }
}

RELEASE_CASE("apt-repository.sh: apt takes the package from it, and refuses an index that was changed")
{
  skip_if(release.sh("command -v gpg dpkg-deb dpkg-scanpackages apt-get").wait(30s) != success,
          "gpg, dpkg-dev and apt");
  const std::string prepare =
      "export GNUPGHOME=$PWD/gpg; mkdir -m 700 gpg; trap 'gpgconf --kill all' EXIT\n"
      "set -e; gpg --batch -q --passphrase '' --quick-generate-key 'test <test@rlock.test>' ed25519 sign never\n"
      "mkdir -p package/DEBIAN debs state/lists/partial cache/archives/partial\n"
      "printf 'Package: rlock\\nVersion: 1\\nArchitecture: %s\\nMaintainer: t <t@t>\\nDescription: t\\n' "
      "$(dpkg --print-architecture) >package/DEBIAN/control\n"
      "dpkg-deb -b package debs/rlock_1_$(dpkg --print-architecture).deb >/dev/null\n";
  const std::string apt =
      "apt() { apt-get -o Dir::Etc::sourcelist=$PWD/public/rlock.sources -o Dir::Etc::sourceparts=- "
      "-o Dir::State=$PWD/state -o Dir::Cache=$PWD/cache -o APT::Sandbox::User=root "
      "-o APT::Update::Error-Mode=any \"$@\"; }\n"
      "sed -i \"s|/etc/apt/keyrings|$PWD/public|\" public/rlock.sources\n";
  rlock::test::Process taken =
      release.sh(prepare + (packaging / "release/apt-repository.sh").string() + " debs public\n" + apt +
                 "apt update && apt download rlock && cmp rlock_1_*.deb debs/rlock_1_*.deb");
  CHECK_MESSAGE(taken.wait(60s) == success, taken.err() << taken.out());

  rlock::test::Process changed = release.sh(
      "echo >>public/dists/stable/main/binary-$(dpkg --print-architecture)/Packages\n"
      "gzip -kf public/dists/stable/main/binary-*/Packages; rm -rf state; mkdir -p state/lists/partial\n" +
      apt + "apt update");
  CHECK(changed.wait(60s) != success);
}
