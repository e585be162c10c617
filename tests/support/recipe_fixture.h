// SPDX-License-Identifier: Apache-2.0
// Runs the recipes of packaging/recipes in a directory of their own. Stubs record the calls of other programs.
#pragma once

#include "support/paths.h"
#include "support/redis_fixture.h"
#include "support/temp_dir.h"
#include "support/text_file.h"

#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace rlock::test {

namespace fs = std::filesystem;

inline const fs::path recipes = fs::path(RLOCK_SOURCE_DIR) / "packaging" / "recipes";

// A directory with the recipes, their server, and rlock in PATH.
class RecipeFixture {
 public:
  RecipeFixture() : dir(make_temp_dir("recipes"))
  {
    fs::copy(recipes, dir);
    fs::create_directory(dir / "bin");
    for (const char* name : {"rlock", "rflock"}) {
      fs::create_symlink(RLOCK_BINARY, dir / "bin" / name);
    }
  }

  // Makes a stub of a program that a recipe calls. The stub records its name and arguments, and then runs `more`.
  void stub(const std::string& name, const std::string& more = "")
  {
    std::ofstream(dir / name) << "#!/bin/sh\necho " << name << " \"$@\" >>notes\n" << more << "\n";
    fs::permissions(dir / name, fs::perms::owner_all);
  }

  Process start(std::vector<std::string> argv, std::map<std::string, std::optional<std::string>> env = {})
  {
    ProcessOptions options;
    options.cwd = dir;
    options.env = std::move(env);
    options.env.try_emplace("RLOCK_SERVER", server.url());
    options.env["PATH"] = (dir / "bin").string() + ":/usr/local/bin:/usr/bin:/bin";
    return Process(std::move(argv), options);
  }

  [[nodiscard]] std::string notes() const { return text_of(dir / "notes"); }
  [[nodiscard]] bool is_free(const std::string& key) const { return as_int(server.command({"EXISTS", key})) == 0; }

  const fs::path dir;
  const RedisServer server;
};

}  // namespace rlock::test

#define RECIPE_CASE(title) CASE_WITH(rlock::test::RecipeFixture, fixture, title)
