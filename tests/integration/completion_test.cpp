// SPDX-License-Identifier: Apache-2.0
// Tab in real shells on a pseudo-terminal. A stub in place of rlock writes down its arguments.
#include "process/launch.h"
#include "support/integration.h"
#include "support/paths.h"
#include "support/script.h"
#include "support/skip.h"
#include "support/terminal.h"

using namespace rlock::test;

namespace {

struct Shell {
  std::string name;
  std::vector<std::string> argv;
  std::string prepare;  // typed first
};

const std::vector<Shell> shells{
    {"bash", {"bash", "--noprofile", "--norc", "-i"}, ". <(rlock completion bash)"},
    {"zsh", {"zsh", "-f", "-i"}, "unsetopt beep; autoload -U compinit; compinit -u -D; . <(rlock completion zsh)"},
    {"fish", {"fish", "--no-config", "-i"}, "rlock completion fish | source"},
};

// A shell on a terminal, and its user's keys.
class Typist {
 public:
  Typist(const Shell& shell, const RedisServer& server)
      : m_dir(make_temp_dir("tab")), m_shell(shell.argv, options(server))
  {
    type(shell.prepare + "\r");
    type("echo ready >" + (m_dir / "ready").string() + "\r");
    try {
      wait_until([&] { return std::filesystem::exists(m_dir / "ready"); }, shell.name + " is ready", 30s);
    } catch (...) {
      MESSAGE(m_terminal.seen());
      throw;
    }
  }

  // The arguments of rlock or rflock after Tab and Enter, with blanks between.
  std::string completed(const std::string& line)
  {
    std::filesystem::remove(m_dir / "called");
    type(line + "\t");
    type("\r");
    wait_until(
        [&] {
          m_terminal.seen();
          return std::filesystem::exists(m_dir / "called");
        },
        "rlock is called after: " + line, 20s);
    return text_of(m_dir / "called");
  }

  std::filesystem::path dir() const { return m_dir; }

 private:
  ProcessOptions options(const RedisServer& server)
  {
    const std::string note = "[ \"$1\" = completion ] && exec " RLOCK_BINARY
                             " \"$@\"\n"
                             "echo \"$*\" >" +
                             (m_dir / "new").string() + "; mv " + (m_dir / "new").string() + " " +
                             (m_dir / "called").string() + "\n";
    for (const char* name : {"rlock", "rflock"}) {
      std::ofstream(m_dir / name) << "#!/bin/sh\n" << note;
      std::filesystem::permissions(m_dir / name, std::filesystem::perms::owner_all);
    }
    ProcessOptions options;
    options.terminal = m_terminal.process_side();
    options.cwd = m_dir;
    options.env["PATH"] = m_dir.string() + ":/usr/local/bin:/usr/bin:/bin";
    options.env["TERM"] = "vt100";
    options.env["HOME"] = m_dir.string();
    options.env["RLOCK_SERVER"] = server.url();
    return options;
  }

  void type(const std::string& keys)
  {
    m_terminal.type(keys);
    m_terminal.seen();
  }

  std::filesystem::path m_dir;
  TestTerminal m_terminal;
  Process m_shell;
};

void press_tab_in(const Shell& shell)
{
  skip_if(!find_command(shell.name, "/usr/bin:/bin"), shell.name + " is not installed");
  const RedisServer server;
  Process holder = start_on(server, {"run", "-k", "stock:17", "--", "sleep", "1000"});
  wait_until([&] { return as_int(server.command({"EXISTS", "stock:17"})) == 1; }, "the lock is held");
  Typist typist(shell, server);
  std::ofstream(typist.dir() / "certificate.pem");

  CHECK(typist.completed("rlock forc") == "force-unlock\n");
  CHECK(typist.completed("rlock run --on-l") == "run --on-lost\n");
  CHECK(typist.completed("rlock run --on-lost wa") == "run --on-lost warn\n");
  CHECK(typist.completed("rlock run --on-lost=wa") == "run --on-lost=warn\n");
  CHECK(typist.completed("rlock status sto") == "status stock:17\n");
  CHECK(typist.completed("rlock ttl -k stock:1") == "ttl -k stock:17\n");
  CHECK(typist.completed("rlock run --cacert cert") == "run --cacert certificate.pem\n");
  CHECK(typist.completed("rlock run -k a -- mkfif") == "run -k a -- mkfifo\n");
  CHECK(typist.completed("rlock run -k a -- cat certif") == "run -k a -- cat certificate.pem\n");
  CHECK(typist.completed("rlock run -k a --ttl 5s -- mkfif") == "run -k a --ttl 5s -- mkfifo\n");
  CHECK(typist.completed("rflock -n stock cat certif") == "-n stock cat certificate.pem\n");
  CHECK(typist.completed("rflock -n sto") == "-n stock:17\n");
  CHECK(typist.completed("rflock --exclu") == "--exclusive\n");
  CHECK(typist.completed("rflock -n stock mkfif") == "-n stock mkfifo\n");
  CHECK(typist.completed("rlock help force-") == "help force-unlock\n");
}

}  // namespace

TEST_CASE("completion: bash, by the Tab key") { press_tab_in(shells[0]); }
TEST_CASE("completion: zsh, by the Tab key") { press_tab_in(shells[1]); }
TEST_CASE("completion: fish, by the Tab key") { press_tab_in(shells[2]); }
