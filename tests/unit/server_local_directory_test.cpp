// SPDX-License-Identifier: Apache-2.0
// Where the private server may keep its socket.
#include "redis/local.h"
#include "support/integration.h"

using namespace rlock::test;

namespace {

// "usable", "no parent" or why not.
std::string answer(const std::string& directory)
{
  const auto prepared = prepare_directory(directory);
  if (!prepared) {
    CHECK(prepared.error().code == ErrorCode::config);
    return prepared.error().text;
  }
  return *prepared ? "usable" : "no parent";
}

}  // namespace

TEST_CASE("local directory: made for this user alone, or refused with what helps")
{
  namespace fs = std::filesystem;
  const fs::path top = test::make_temp_dir("local");

  CHECK(answer(top / "new") == "usable");
  CHECK(is_private_directory(top / "new"));
  CHECK(answer(top / "new") == "usable");  // it is there already

  CHECK(answer(top / "none" / "new") == "no parent");
  CHECK(has(answer("run/here"), "it is not absolute (correct XDG_RUNTIME_DIR)"));
  CHECK(has(answer(top / std::string(120, 'x')), "(set XDG_RUNTIME_DIR to a shorter one)"));

  const fs::path file = top / "file";
  std::ofstream(file) << "x";
  CHECK(has(answer(file), "it is no directory (remove it)"));
  CHECK(has(answer(file / "under"), "not a directory"));

  const fs::path open = top / "open";
  fs::create_directory(open);
  fs::permissions(open, fs::perms::owner_all | fs::perms::others_exec);
  CHECK(has(answer(open), "other users can access it (chmod 700 "));
  CHECK_FALSE(is_private_directory(open));

  fs::create_directory_symlink(top / "new", top / "link");
  CHECK_FALSE(is_private_directory(top / "link"));
}

TEST_CASE("local directory: the missing one is named")
{
  const std::filesystem::path missing = test::make_temp_dir("local") / "none";
  const rlock::BootClock clock;
  const auto server =
      rlock::local_server({.directories = {missing / "rlock"}, .name = "rlock-test-of-a-missing-directory"}, clock,
                          {.deadline = clock.now() + std::chrono::seconds(5), .stop = rlock::StopToken::never()});
  REQUIRE_FALSE(server);
  CHECK(server.error().text == "local: there is no directory for its socket: " + missing.string() +
                                   " does not exist (set XDG_RUNTIME_DIR to a directory of this user)");
}
