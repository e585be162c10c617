// SPDX-License-Identifier: Apache-2.0
// The files of a release, and a web server that has them, for the tests of the installers.
#pragma once

#include "support/hostile_server.h"
#include "support/paths.h"
#include "support/process.h"
#include "support/skip.h"
#include "support/temp_dir.h"
#include "support/text_file.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace rlock::test {

inline const std::filesystem::path packaging = std::filesystem::path(RLOCK_SOURCE_DIR) / "packaging";

#ifdef __aarch64__
inline constexpr const char* this_machine = "aarch64";
inline constexpr const char* other_machine = "x86_64";
#else
inline constexpr const char* this_machine = "x86_64";
inline constexpr const char* other_machine = "aarch64";
#endif

inline void write_program(const std::filesystem::path& file, const std::string& text)
{
  std::ofstream(file, std::ios::binary) << text;
  std::filesystem::permissions(file, std::filesystem::perms::owner_all);
}

// The files of a release: the built rlock as the program of this machine, and its checksum, signed with a key of the test.
class ReleaseFixture {
 public:
  static constexpr std::chrono::seconds time_limit{30};  // of each script

  ReleaseFixture() : dir(make_temp_dir("release"))
  {
    std::filesystem::create_directory(dir / "files");
    std::filesystem::create_directory(dir / "bin");
    std::filesystem::copy_file(RLOCK_BINARY, program(this_machine));
    CHECK(sh("openssl genpkey -algorithm ed25519 -out key.pem && openssl pkey -in key.pem -pubout -out key.pub")
              .wait(time_limit) == Exit{.code = 0, .signal = 0});
    std::filesystem::create_directory(dir / "installer");
    std::ofstream(installer()) << with_key_of_test(text_of(packaging / "install.sh"));
    note_sums();
  }

  [[nodiscard]] std::filesystem::path program(const std::string& machine) const
  {
    return dir / "files" / ("rlock-0.1.0-linux-" + machine);
  }

  // install.sh with the key of this release.
  [[nodiscard]] std::filesystem::path installer() const { return dir / "installer" / "install.sh"; }

  void note_sums() const
  {
    CHECK(sh("cd files && rm -f SHA256SUMS && sha256sum rlock-* >SHA256SUMS").wait(time_limit) ==
          Exit{.code = 0, .signal = 0});
    sign("key.pem");
  }

  void sign(const std::string& key) const
  {
    CHECK(sh("openssl pkeyutl -sign -inkey " + key + " -rawin -in files/SHA256SUMS -out files/SHA256SUMS.sig")
              .wait(time_limit) == Exit{.code = 0, .signal = 0});
  }

  // Makes uname(1) say that the machine is another one.
  void pretend(const std::string& machine) const
  {
    write_program(dir / "bin" / "uname", "#!/bin/sh\n[ \"$1\" = -s ] && echo Linux || echo " + machine + "\n");
  }

  [[nodiscard]] Process sh(const std::string& script, std::map<std::string, std::optional<std::string>> env = {}) const
  {
    ProcessOptions options{.cwd = dir};
    options.env = std::move(env);
    options.env["PATH"] = m_path.empty() ? (dir / "bin").string() + ":/usr/local/bin:/usr/bin:/bin" : m_path;
    return Process({"sh", "-c", script}, options);
  }

  // Makes a PATH that has only the commands of install.sh and the named programs.
  void only_with(const std::vector<std::string>& programs) const
  {
    for (const char* command : {"sh", "id", "uname", "dirname", "mkdir", "mktemp", "grep", "cp", "sha256sum", "od",
                                "tr", "chmod", "ln", "mv", "rm", "openssl"}) {
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
      if (std::filesystem::exists(std::filesystem::path(folder) / program)) {
        std::filesystem::create_symlink(std::filesystem::path(folder) / program, dir / "bin" / name);
        return;
      }
    }
    skip("needs " + program);
  }

  [[nodiscard]] Process install(const std::string& from) const
  {
    return sh("exec sh " + installer().string() + " --from " + from + " --to installed");
  }

  // Runs install.sh, which must fail without installing a file, and returns its line on stderr.
  [[nodiscard]] std::string refusal(const std::string& from = "files") const
  {
    Process installer = install(from);
    CHECK(installer.wait(time_limit) == Exit{.code = 1, .signal = 0});
    CHECK(!std::filesystem::exists(dir / "installed" / "rlock"));
    CHECK((!std::filesystem::exists(dir / "installed") || std::filesystem::is_empty(dir / "installed")));
    CHECK(installer.out().empty());
    const std::string line = installer.err();
    CHECK_MESSAGE(line.starts_with("install.sh: "), line);
    CHECK_MESSAGE(std::count(line.begin(), line.end(), '\n') == 1, line);
    return line;
  }

  const std::filesystem::path dir;

 private:
  [[nodiscard]] std::string with_key_of_test(std::string script) const
  {
    const std::string begin = "-----BEGIN PUBLIC KEY-----";
    const std::string end = "-----END PUBLIC KEY-----";
    const std::size_t from = script.find(begin);
    const std::size_t to = script.find(end, from);
    REQUIRE(to != std::string::npos);
    std::string key = text_of(dir / "key.pub");
    key.erase(key.find_last_not_of('\n') + 1);
    return script.replace(from, to + end.size() - from, key);
  }

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
              const bool found = request.starts_with("GET " + place) &&
                                 std::filesystem::is_regular_file(files / path.substr(place.size()));
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

}  // namespace rlock::test

#define RELEASE_CASE(title) CASE_WITH(rlock::test::ReleaseFixture, release, title)
