// SPDX-License-Identifier: Apache-2.0
#include "process/launch.h"

#include "support/job_runner.h"

#include <filesystem>
#include <fstream>

#include <doctest/doctest.h>
#include <sys/stat.h>

using namespace rlock;
using namespace rlock::test;

namespace {

std::string show(const Result<std::string>& found)
{
  if (found) {
    return *found;
  }
  return found.error().code == ErrorCode::not_found ? "not found" : "not executable";
}

void make_file(const std::string& path, mode_t kind)
{
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path) << "#!/bin/sh\n";
  REQUIRE(::chmod(path.c_str(), kind) == 0);
}

}  // namespace

JOB_DIR_CASE("command: what execvp would execute")
{
  const std::string bin = dir / "bin";
  const std::string sbin = dir / "sbin";
  make_file(bin + "/plain", 0644);
  make_file(bin + "/tool", 0755);
  make_file(sbin + "/tool", 0755);
  make_file(sbin + "/plain", 0755);
  make_file(bin + "/data", 0644);
  std::filesystem::create_directory(bin + "/folder");

  const std::string both = bin + ":" + sbin;
  struct Row {
    const char* why;
    std::string name;
    std::string path;
    std::string expect;
  };
  const Row rows[] = {
      {"the first of that name", "tool", both, bin + "/tool"},
      {"the first that is executable", "plain", both, sbin + "/plain"},
      {"none is executable", "data", both, "not executable"},
      {"a directory is no command", "folder", both, "not executable"},
      {"absent", "nonesuch", both, "not found"},
      {"an empty name", "", both, "not found"},
      {"a slash: PATH is not asked", bin + "/tool", "", bin + "/tool"},
      {"a slash, absent", bin + "/nonesuch", both, "not found"},
      {"a slash, a directory", bin, both, "not executable"},
      {"a slash, no x", bin + "/data", both, "not executable"},
      {"elements that do not exist", "tool", "/nonesuch:" + bin + "/tool:" + sbin, sbin + "/tool"},
      {"a name like no other in an empty PATH", "rlock-nonesuch", "", "not found"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.why);
    CHECK(show(find_command(row.name, row.path)) == row.expect);
  }
}

JOB_DIR_CASE("command: an empty element of PATH is the current directory")
{
  make_file(dir / "here", 0755);
  const std::string result = in_runner([&] {
    std::filesystem::current_path(dir);
    return show(find_command("here", "/nonesuch:")) + " " + show(find_command("here", "")) + " " +
           show(find_command("here", "."));
  });
  CHECK(result == "./here ./here ./here");
}

TEST_CASE("command: one clear line")
{
  const auto found = find_command("none\nsuch", "/nonesuch");
  REQUIRE_FALSE(found);
  CHECK(found.error().text == "cannot execute none\\nsuch: not found in PATH");
  CHECK(find_command("none such", "/nonesuch").error().text ==
        "cannot execute none such: not found in PATH (give its words apart, or use a shell: sh -c '...')");
}
