// SPDX-License-Identifier: Apache-2.0
// packaging/install.sh and packaging/action.yml, with files that look like a release, and packaging/demo. packaging/release.sh
// itself tries its files.
#include "cli/help/help.h"
#include "cli/verbs/table.h"
#include "support/hostile_server.h"
#include "support/paths.h"
#include "support/process.h"
#include "support/redis_fixture.h"
#include "support/skip.h"
#include "support/temp_dir.h"
#include "support/text_file.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>
#include <string>
#include <vector>

#include <unistd.h>

using namespace rlock;
using namespace rlock::test;
using namespace std::chrono_literals;

namespace {

namespace fs = std::filesystem;

const fs::path packaging = fs::path(RLOCK_SOURCE_DIR) / "packaging";

#ifdef __aarch64__
constexpr const char* this_machine = "aarch64";
constexpr const char* other_machine = "x86_64";
#else
constexpr const char* this_machine = "x86_64";
constexpr const char* other_machine = "aarch64";
#endif

void write_program(const fs::path& file, const std::string& text)
{
  std::ofstream(file, std::ios::binary) << text;
  fs::permissions(file, fs::perms::owner_all);
}

// The files of a release: the built rlock as the program of this machine, and its checksum.
class ReleaseFixture {
 public:
  ReleaseFixture() : dir(make_temp_dir("release"))
  {
    fs::create_directory(dir / "files");
    fs::create_directory(dir / "bin");
    fs::copy_file(RLOCK_BINARY, program(this_machine));
    note_sums();
  }

  [[nodiscard]] fs::path program(const std::string& machine) const
  {
    return dir / "files" / ("rlock-0.1.0-linux-" + machine);
  }

  void note_sums() const
  {
    CHECK(sh("cd files && rm -f SHA256SUMS && sha256sum rlock-* >SHA256SUMS").wait(30s) ==
          Exit{.code = 0, .signal = 0});
  }

  // uname(1) says that the machine is another one.
  void pretend(const std::string& machine) const
  {
    write_program(dir / "bin" / "uname", "#!/bin/sh\n[ \"$1\" = -s ] && echo Linux || echo " + machine + "\n");
  }

  [[nodiscard]] rlock::test::Process sh(const std::string& script,
                                        std::map<std::string, std::optional<std::string>> env = {}) const
  {
    ProcessOptions options{.cwd = dir};
    options.env = std::move(env);
    options.env["PATH"] = m_path.empty() ? (dir / "bin").string() + ":/usr/local/bin:/usr/bin:/bin" : m_path;
    return rlock::test::Process({"sh", "-c", script}, options);
  }

  // The commands of install.sh and the named programs are all that PATH has.
  void only_with(const std::vector<std::string>& programs) const
  {
    for (const char* command : {"sh", "id", "uname", "dirname", "mkdir", "mktemp", "grep", "cp", "sha256sum", "od",
                                "tr", "chmod", "ln", "mv", "rm"}) {
      provide(command, command);
    }
    for (const std::string& program : programs) {
      provide(program, program);
    }
    m_path = (dir / "bin").string();
  }

  // A program of this machine under another name.
  void provide(const std::string& program, const std::string& name) const
  {
    for (const char* folder : {"/usr/local/bin", "/usr/bin", "/bin"}) {
      if (fs::exists(fs::path(folder) / program)) {
        fs::create_symlink(fs::path(folder) / program, dir / "bin" / name);
        return;
      }
    }
    skip("needs " + program);
  }

  [[nodiscard]] rlock::test::Process install(const std::string& from) const
  {
    return sh("exec sh " + (packaging / "install.sh").string() + " --from " + from + " --to installed");
  }

  // The line on stderr, after which nothing is installed.
  [[nodiscard]] std::string refusal(const std::string& from = "files") const
  {
    rlock::test::Process installer = install(from);
    CHECK(installer.wait(30s) == Exit{.code = 1, .signal = 0});
    CHECK(!fs::exists(dir / "installed" / "rlock"));
    CHECK((!fs::exists(dir / "installed") || fs::is_empty(dir / "installed")));
    CHECK(installer.out().empty());
    const std::string line = installer.err();
    CHECK_MESSAGE(line.starts_with("install.sh: "), line);
    CHECK_MESSAGE(std::count(line.begin(), line.end(), '\n') == 1, line);
    return line;
  }

  const fs::path dir;

 private:
  mutable std::string m_path;
};

// A web server that has the files of the release below `place`.
class ReleaseServer {
 public:
  explicit ReleaseServer(const ReleaseFixture& release, std::string place = "/")
      : m_server(
            [files = release.dir / "files", place = std::move(place)](const Peer& peer) {
              std::string request;
              while (request.find("\r\n\r\n") == std::string::npos) {
                const std::string more = peer.hear_some();
                if (more.empty()) {
                  return;
                }
                request += more;
              }
              const std::string path = request.substr(4, request.find(' ', 4) - 4);  // after "GET "
              const bool found =
                  request.starts_with("GET " + place) && fs::is_regular_file(files / path.substr(place.size()));
              const std::string body = found ? text_of(files / path.substr(place.size())) : "there is no such page\n";
              peer.say(std::string("HTTP/1.1 ") + (found ? "200 OK" : "404 Not Found") + "\r\nConnection: close\r\n" +
                       "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
            },
            Endpoint::Kind::tcp)
  {
  }

  [[nodiscard]] std::string address() const { return "http://127.0.0.1:" + std::to_string(m_server.port()); }

 private:
  HostileServer m_server;
};

// Nothing listens there.
std::string address_without_server()
{
  Endpoint endpoint;
  const Fd socket = listening_socket(Endpoint::Kind::tcp, endpoint);
  return "http://127.0.0.1:" + std::to_string(endpoint.port);
}

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

TEST_CASE("install.sh: installs the program of this machine, also over an old one")
{
  const ReleaseFixture release;
  for (int i = 0; i < 2; ++i) {
    rlock::test::Process installer =
        release.sh("sh " + (packaging / "install.sh").string() + " --from files --to installed");
    CHECK_MESSAGE(installer.wait(30s) == Exit{0}, installer.err());
    CHECK(installer.out() == "rlock-0.1.0-linux-" + std::string(this_machine) + " is now installed/rlock\n" +
                                 "installed is not in PATH\n");
  }
  CHECK(release.sh("installed/rflock --version && cmp installed/rlock " + std::string(RLOCK_BINARY)).wait(30s) ==
        Exit{.code = 0, .signal = 0});
  CHECK(std::distance(fs::directory_iterator(release.dir / "installed"), fs::directory_iterator()) == 2);
}

TEST_CASE("install.sh: takes the directory that it lies in when none is given")
{
  const ReleaseFixture release;
  fs::copy_file(packaging / "install.sh", release.dir / "files" / "install.sh");
  CHECK(release.sh("sh files/install.sh --to installed").wait(30s) == Exit{.code = 0, .signal = 0});
  CHECK(fs::exists(release.dir / "installed" / "rlock"));
}

TEST_CASE("install.sh: refuses a program with another checksum")
{
  const ReleaseFixture release;
  std::ofstream(release.program(this_machine), std::ios::app) << "more";
  CHECK(release.refusal().find("has the checksum") != std::string::npos);
}

TEST_CASE("install.sh: refuses a program of another architecture, whatever its name and checksum say")
{
  const ReleaseFixture release;
  release.pretend(other_machine);
  fs::rename(release.program(this_machine), release.program(other_machine));
  release.note_sums();
  CHECK(release.refusal().find("is not a program for " + std::string(other_machine)) != std::string::npos);
}

TEST_CASE("install.sh: says when there is no program for this machine")
{
  const ReleaseFixture release;
  SUBCASE("never")
  {
    release.pretend("riscv64");
    CHECK(release.refusal().find("no program is made for riscv64") != std::string::npos);
  }
  SUBCASE("in this release")
  {
    release.pretend(other_machine);
    CHECK(release.refusal().find("names no program for " + std::string(other_machine)) != std::string::npos);
  }
  SUBCASE("because the files are not there")
  {
    fs::remove(release.dir / "files" / "SHA256SUMS");
    CHECK(release.refusal().find("cannot get SHA256SUMS from files") != std::string::npos);
  }
}

TEST_CASE("install.sh: gets the files over the network with curl or wget")
{
  const ReleaseFixture release;
  const ReleaseServer server(release, "/v1/");
  SUBCASE("curl") { release.only_with({"curl", "cmp"}); }
  SUBCASE("wget") { release.only_with({"wget", "cmp"}); }
  SUBCASE("wget of busybox")
  {
    release.only_with({"cmp"});
    release.provide("busybox", "wget");
  }
  rlock::test::Process installer = release.install(server.address() + "/v1");
  CHECK_MESSAGE(installer.wait(30s) == Exit{0}, installer.err());
  CHECK(installer.err().empty());
  CHECK(release.sh("cmp installed/rlock " + std::string(RLOCK_BINARY)).wait(30s) == Exit{.code = 0, .signal = 0});
}

TEST_CASE("install.sh: refuses what the network gives wrong or not at all")
{
  const ReleaseFixture release;
  const ReleaseServer server(release);
  std::vector<std::string> programs;
  SUBCASE("curl") { programs = {"curl"}; }
  SUBCASE("wget") { programs = {"wget"}; }
  SUBCASE("wget of busybox") { release.provide("busybox", "wget"); }
  release.only_with(programs);
  const bool is_silent = !programs.empty() && programs.front() == "wget";  // with -q, also about errors
  const std::string away = address_without_server();
  const std::string reason = release.refusal(away);
  CHECK(reason.find("cannot get SHA256SUMS from " + away + ": ") != std::string::npos);
  CHECK((reason.find(": wget ended with 4\n") != std::string::npos) == is_silent);
  CHECK(release.refusal(server.address() + "/v2").find("cannot get SHA256SUMS from ") != std::string::npos);
  std::ofstream(release.program(this_machine), std::ios::app) << "more";
  CHECK(release.refusal(server.address()).find("has the checksum") != std::string::npos);
  fs::remove(release.program(this_machine));
  CHECK(release.refusal(server.address()).find("cannot get rlock-0.1.0-linux-") != std::string::npos);
}

TEST_CASE("install.sh: says that it needs curl or wget")
{
  const ReleaseFixture release;
  release.only_with({});
  CHECK(release.refusal("http://127.0.0.1:1").find("needs curl or wget") != std::string::npos);
}

TEST_CASE("install.sh: needs --from when it comes through a pipe")
{
  const ReleaseFixture release;
  rlock::test::Process installer =
      release.sh("cat " + (packaging / "install.sh").string() + " | sh -s -- --to installed");
  CHECK(installer.wait(30s) == Exit{.code = 1, .signal = 0});
  CHECK(installer.err() == "install.sh: --from must name the directory or the address of the files\n");
  CHECK(!fs::exists(release.dir / "installed"));
}

TEST_CASE("install.sh: says which option has no value")
{
  const ReleaseFixture release;
  rlock::test::Process installer = release.sh("exec sh " + (packaging / "install.sh").string() + " --to");
  CHECK(installer.wait(30s) == Exit{.code = 1, .signal = 0});
  CHECK(installer.err() == "install.sh: --to needs a value\n");
}

TEST_CASE("install.sh: refuses a program that does not run, and says why")
{
  const ReleaseFixture release;
  std::string bytes = text_of("/bin/true").substr(0, 64);  // of an ELF file only the header
  std::ofstream(release.program(this_machine), std::ios::binary | std::ios::trunc) << bytes;
  release.note_sums();
  CHECK(release.refusal().find("does not run here: ") != std::string::npos);
}

TEST_CASE("install.sh: another user than root installs in ~/.local/bin, and is told where it may not write")
{
  const ReleaseFixture release;
  const std::string script = "install.sh --from " + (release.dir / "files").string();
  std::string as_user;
  if (::geteuid() == 0) {
    as_user = "setpriv --reuid 65534 --regid 65534 --clear-groups ";
    // The directories of the test belong to root, and another user cannot look into them.
    fs::permissions(release.dir, fs::perms(0755));
    fs::permissions(release.program(this_machine), fs::perms(0755));
    CHECK(release.sh("d=$PWD; while [ $d != / ] && [ -O $d ]; do chmod go+x $d || exit; d=${d%/*}; d=${d:-/}; done")
              .wait(30s) == Exit{.code = 0, .signal = 0});
    CHECK(release.sh("mkdir home && chown 65534 home && cp " + (packaging / "install.sh").string() + " .").wait(30s) ==
          Exit{.code = 0, .signal = 0});
  } else {
    CHECK(release.sh("mkdir home && cp " + (packaging / "install.sh").string() + " .").wait(30s) ==
          Exit{.code = 0, .signal = 0});
  }
  const std::string home = (release.dir / "home").string();
  rlock::test::Process installer = release.sh(as_user + "sh ./" + script, {{"HOME", home}});
  CHECK_MESSAGE(installer.wait(30s) == Exit{0}, installer.err());
  CHECK(installer.out().find(" is now " + home + "/.local/bin/rlock\n") != std::string::npos);
  CHECK(release.sh(as_user + home + "/.local/bin/rflock --version").wait(30s) == Exit{.code = 0, .signal = 0});

  fs::create_directory(release.dir / "closed");
  fs::permissions(release.dir / "closed", fs::perms(0555));
  for (const char* place : {"closed", "closed/below"}) {
    rlock::test::Process refused = release.sh(as_user + "sh ./" + script + " --to " + place);
    CHECK(refused.wait(30s) == Exit{.code = 1, .signal = 0});
    CHECK(refused.err() == "install.sh: cannot write to " + std::string(place) + "; --to names another directory\n");
  }
  CHECK(fs::is_empty(release.dir / "closed"));
}

TEST_CASE("action: finds the release of the tag that the workflow names")
{
  const ReleaseFixture release;
  const ReleaseServer server(release, "/shop/rlock/releases/download/v0.1.0/");
  release.only_with({"curl"});
  const std::map<std::string, std::optional<std::string>> env{{"RLOCK_FROM", ""},
                                                              {"RLOCK_ACTION_REPOSITORY", "shop/rlock"},
                                                              {"RLOCK_ACTION_REF", "v0.1.0"},
                                                              {"GITHUB_ACTION_PATH", packaging.string()},
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
  CHECK(missing.wait(30s) == Exit{.code = 1, .signal = 0});
  CHECK(missing.err().find("cannot get SHA256SUMS from " + server.address()) != std::string::npos);
  CHECK(!fs::exists(release.dir / "path"));
}

TEST_CASE("action: installs rlock, and runs commands under the lock with the inputs")
{
  const ReleaseFixture release;
  const RedisServer server;
  fs::create_directory(release.dir / "temp");
  const std::map<std::string, std::optional<std::string>> env{{"RLOCK_FROM", "files"},
                                                              {"GITHUB_ACTION_PATH", packaging.string()},
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
  CHECK(release.sh("set -e\n" + step_script("Install rlock"), env).wait(30s) == Exit{.code = 0, .signal = 0});
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
  CHECK_MESSAGE(working.wait(30s) == Exit{0}, working.err());
  CHECK(working.out().find("deploy:shop unset\n") != std::string::npos);
  CHECK(working.out().find("https://git.test/shop/web/actions/runs/7\n") != std::string::npos);
}

TEST_CASE("action: without a release it says what to give")
{
  const ReleaseFixture release;
  rlock::test::Process step =
      release.sh(step_script("Install rlock"),
                 {{"RLOCK_FROM", ""}, {"RLOCK_ACTION_REPOSITORY", "shop/rlock"}, {"RLOCK_ACTION_REF", "main"}});
  CHECK(step.wait(30s) == Exit{.code = 64, .signal = 0});
  CHECK(step.out().find("name a release tag") != std::string::npos);
}

TEST_CASE("action, templates and workflows: they are YAML, and name options and files that exist")
{
  const ReleaseFixture release;
  if (release.sh("python3 -c 'import yaml'").wait(30s) == Exit{.code = 0, .signal = 0}) {
    CHECK(release
              .sh("cd " + packaging.string() +
                  " && for file in action.yml gitlab-template.yml ../.gitlab-ci.yml "
                  "../.github/workflows/*.yml; do python3 -c 'import sys, yaml; assert "
                  "len(yaml.safe_load(open(sys.argv[1]))) "
                  "> 0' $file || exit 1; done")
              .wait(30s) == Exit{.code = 0, .signal = 0});
  }
  const std::string help = cli::help_of(**cli::find_verb("run"));
  const std::string text = text_of(packaging / "action.yml") + text_of(packaging / "gitlab-template.yml");
  const std::regex option("(?:set --|rlock run).* (--?[a-zA-Z-]+)[ \"=]");
  int options = 0;
  for (std::string line, rest = text; !rest.empty();) {
    line = rest.substr(0, rest.find('\n'));
    rest.erase(0, line.size() + 1);  // the comments of YAML are searched too
    if (line.find("rlock run ") != std::string::npos) {
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

TEST_CASE("demo: the picture of watch is recorded from a real session")
{
  const ReleaseFixture release;
  if (release.sh("python3 -c '' && unshare --uts $([ $(id -u) = 0 ] || echo --user --map-root-user) true").wait(30s) !=
      Exit{0}) {
    skip("python3, and root or user namespaces");
  }
  rlock::test::Process recording =
      release.sh("python3 " + (packaging / "demo" / "record.py").string() + " --to . " + RLOCK_BINARY + " watch");
  CHECK_MESSAGE(recording.wait(100s) == Exit{0}, recording.err());
  const std::string picture = text_of(release.dir / "watch.svg");
  for (const char* text : {">rlock watch<", "billing:42", "root@web1 (pid ", "root@web3 (pid "}) {
    CHECK_MESSAGE(picture.find(text) != std::string::npos, text);
  }
}
