// SPDX-License-Identifier: Apache-2.0
// packaging/install.sh, with files that look like a release.
#include "support/integration.h"
#include "support/release_fixture.h"

#include <unistd.h>

using namespace rlock::test;

namespace {

namespace fs = std::filesystem;

// Nothing listens there.
std::string address_without_server()
{
  Endpoint endpoint;
  const Fd socket = listening_socket(Endpoint::Kind::tcp, endpoint);
  return "http://127.0.0.1:" + std::to_string(endpoint.port);
}

}  // namespace

RELEASE_CASE("install.sh: installs the program of this machine, also over an old one")
{
  for (int i = 0; i < 2; ++i) {
    rlock::test::Process installer = release.sh("sh " + release.installer().string() + " --from files --to installed");
    CHECK_MESSAGE(installer.wait(30s) == Exit{0}, installer.err());
    CHECK(installer.out() == "rlock-0.1.0-linux-" + std::string(this_machine) + " is now installed/rlock\n" +
                                 "installed is not in PATH\n");
  }
  CHECK(release.sh("installed/rflock --version && cmp installed/rlock " + std::string(RLOCK_BINARY)).wait(30s) ==
        success);
  CHECK(std::distance(fs::directory_iterator(release.dir / "installed"), fs::directory_iterator()) == 2);
}

RELEASE_CASE("install.sh: takes the directory that it lies in when none is given")
{
  fs::copy_file(release.installer(), release.dir / "files" / "install.sh");
  CHECK(release.sh("sh files/install.sh --to installed").wait(30s) == success);
  CHECK(fs::exists(release.dir / "installed" / "rlock"));
}

RELEASE_CASE("install.sh: refuses a program with another checksum")
{
  std::ofstream(release.program(this_machine), std::ios::app) << "more";
  CHECK(has(release.refusal(), "has the checksum"));
}

RELEASE_CASE("install.sh: refuses checksums that are not signed with the key of the releases")
{
  const std::string not_signed = "is not signed with the key of the releases";
  SUBCASE("because there is no signature")
  {
    fs::remove(release.dir / "files" / "SHA256SUMS.sig");
    CHECK(has(release.refusal(), "cannot get SHA256SUMS.sig from files"));
  }
  SUBCASE("because they are signed with another one")
  {
    CHECK(release.sh("openssl genpkey -algorithm ed25519 -out other.pem").wait(30s) == success);
    release.sign("other.pem");
    CHECK(has(release.refusal(), not_signed));
  }
  SUBCASE("because they were changed after it")
  {
    std::ofstream(release.dir / "files" / "SHA256SUMS", std::ios::app) << "\n";
    CHECK(has(release.refusal(), not_signed));
  }
}

RELEASE_CASE("install.sh: --key names another key than that of the releases")
{
  const std::string install = "exec sh " + (packaging / "install.sh").string() + " --from files --to installed --key ";
  CHECK(release.sh(install + "key.pub").wait(30s) == success);
  rlock::test::Process installer = release.sh(install + "no-such-file");
  expect_end(installer, exited(1), {err_is("install.sh: cannot read the key no-such-file\n")}, 30s);
}

RELEASE_CASE("install.sh: refuses a program of another architecture, whatever its name and checksum say")
{
  release.pretend(other_machine);
  fs::rename(release.program(this_machine), release.program(other_machine));
  release.note_sums();
  CHECK(has(release.refusal(), "is not a program for " + std::string(other_machine)));
}

RELEASE_CASE("install.sh: says when there is no program for this machine")
{
  SUBCASE("never")
  {
    release.pretend("riscv64");
    CHECK(has(release.refusal(), "no program is made for riscv64"));
  }
  SUBCASE("in this release")
  {
    release.pretend(other_machine);
    CHECK(has(release.refusal(), "names no program for " + std::string(other_machine)));
  }
  SUBCASE("because the files are not there")
  {
    fs::remove(release.dir / "files" / "SHA256SUMS");
    CHECK(has(release.refusal(), "cannot get SHA256SUMS from files"));
  }
}

RELEASE_CASE("install.sh: gets the files over the network with curl or wget")
{
  const ReleaseServer server(release, "/v1/");
  SUBCASE("curl") { release.only_with({"curl", "cmp"}); }
  SUBCASE("wget") { release.only_with({"wget", "cmp"}); }
  SUBCASE("wget of busybox")
  {
    release.only_with({"cmp"});
    release.provide("busybox", "wget");
  }
  rlock::test::Process installer = release.install(server.address() + "/v1");
  expect_end(installer, Exit{0}, {err_is("")}, 30s);
  CHECK(release.sh("cmp installed/rlock " + std::string(RLOCK_BINARY)).wait(30s) == success);
}

RELEASE_CASE("install.sh: refuses what the network gives wrong or not at all")
{
  const ReleaseServer server(release);
  std::vector<std::string> programs;
  SUBCASE("curl") { programs = {"curl"}; }
  SUBCASE("wget") { programs = {"wget"}; }
  SUBCASE("wget of busybox") { release.provide("busybox", "wget"); }
  release.only_with(programs);
  const bool is_silent = !programs.empty() && programs.front() == "wget";  // with -q, also about errors
  const std::string away = address_without_server();
  const std::string reason = release.refusal(away);
  CHECK(has(reason, "cannot get SHA256SUMS from " + away + ": "));
  CHECK((has(reason, ": wget ended with 4\n")) == is_silent);
  CHECK(has(release.refusal(server.address() + "/v2"), "cannot get SHA256SUMS from "));
  std::ofstream(release.program(this_machine), std::ios::app) << "more";
  CHECK(has(release.refusal(server.address()), "has the checksum"));
  fs::remove(release.program(this_machine));
  CHECK(has(release.refusal(server.address()), "cannot get rlock-0.1.0-linux-"));
}

RELEASE_CASE("install.sh: says that it needs curl or wget")
{
  release.only_with({});
  CHECK(has(release.refusal("http://127.0.0.1:1"), "needs curl or wget"));
}

RELEASE_CASE("install.sh: says that it needs openssl")
{
  release.only_with({});
  fs::remove(release.dir / "bin" / "openssl");
  CHECK(has(release.refusal(), "needs openssl"));
}

RELEASE_CASE("install.sh: needs --from when it comes through a pipe")
{
  rlock::test::Process installer = release.sh("cat " + release.installer().string() + " | sh -s -- --to installed");
  CHECK(installer.wait(30s) == exited(1));
  CHECK(installer.err() == "install.sh: --from must name the directory or the address of the files\n");
  CHECK(!fs::exists(release.dir / "installed"));
}

RELEASE_CASE("install.sh: says which option has no value")
{
  rlock::test::Process installer = release.sh("exec sh " + release.installer().string() + " --to");
  expect_end(installer, exited(1), {err_is("install.sh: --to needs a value\n")}, 30s);
}

RELEASE_CASE("install.sh: refuses a program that does not run, and says why")
{
  std::string bytes = text_of("/bin/true").substr(0, 64);  // of an ELF file only the header
  std::ofstream(release.program(this_machine), std::ios::binary | std::ios::trunc) << bytes;
  release.note_sums();
  CHECK(has(release.refusal(), "does not run here: "));
}

RELEASE_CASE("install.sh: another user than root installs in ~/.local/bin, and is told where it may not write")
{
  const std::string script = "install.sh --from " + (release.dir / "files").string();
  std::string as_user;
  if (::geteuid() == 0) {
    as_user = "setpriv --reuid 65534 --regid 65534 --clear-groups ";
    // The directories of the test belong to root, and another user cannot look into them.
    fs::permissions(release.dir, fs::perms(0755));
    fs::permissions(release.program(this_machine), fs::perms(0755));
    CHECK(release.sh("d=$PWD; while [ $d != / ] && [ -O $d ]; do chmod go+x $d || exit; d=${d%/*}; d=${d:-/}; done")
              .wait(30s) == success);
    CHECK(release.sh("mkdir home && chown 65534 home && cp " + release.installer().string() + " .").wait(30s) ==
          success);
  } else {
    CHECK(release.sh("mkdir home && cp " + release.installer().string() + " .").wait(30s) == success);
  }
  const std::string home = (release.dir / "home").string();
  rlock::test::Process installer = release.sh(as_user + "sh ./" + script, {{"HOME", home}});
  expect_end(installer, Exit{0}, {out_has(" is now " + home + "/.local/bin/rlock\n")}, 30s);
  CHECK(release.sh(as_user + home + "/.local/bin/rflock --version").wait(30s) == success);

  fs::create_directory(release.dir / "closed");
  fs::permissions(release.dir / "closed", fs::perms(0555));
  for (const char* place : {"closed", "closed/below"}) {
    rlock::test::Process refused = release.sh(as_user + "sh ./" + script + " --to " + place);
    CHECK(refused.wait(30s) == exited(1));
    CHECK(refused.err() == "install.sh: cannot write to " + std::string(place) + "; --to names another directory\n");
  }
  CHECK(fs::is_empty(release.dir / "closed"));
}
