// SPDX-License-Identifier: Apache-2.0
// Which module may include which: each its own headers and those of the floors below it.
#include "support/paths.h"
#include "support/test.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>

namespace {

namespace fs = std::filesystem;
// Beginnings of what stands in the quotes or brackets.
using Allowed = std::vector<std::string_view>;

// An include without a slash is the standard library's or the system's.
const std::map<std::string, Allowed> floors = {
    {"core/base", {"base/", "sys/"}},
    {"core/net", {"net/", "base/", "openssl/", "sys/", "netinet/", "arpa/"}},
    {"core/lock", {"lock/", "base/", "sys/"}},
    {"core/engine", {"engine/", "lock/", "base/", "lua/scripts.h", "lua/bytecode.h", "sys/"}},
    {"core/redis", {"redis/", "engine/", "lock/", "net/", "base/", "lua/scripts.h", "hiredis/", "sys/", "arpa/"}},
    {"core/stores", {"stores/", "redis/", "engine/", "lock/", "net/", "base/"}},
    {"core/stores/postgres",
     {"stores/postgres/", "stores/engine.h", "engine/", "net/endpoint.h", "net/url_parts.h", "lock/", "base/"}},
    {"core/stores/mysql",
     {"stores/mysql/", "stores/engine.h", "engine/", "net/endpoint.h", "net/url_parts.h", "lock/", "base/", "sys/",
      "mariadb/"}},
    {"core/stores/mongo",
     {"stores/mongo/", "stores/engine.h", "engine/", "net/endpoint.h", "net/dial.h", "net/url_parts.h", "lock/",
      "base/", "mongoc/", "sys/"}},
    {"core/stores/etcd",
     {"stores/etcd/", "stores/engine.h", "engine/", "net/byte_stream.h", "net/endpoint.h", "net/url_parts.h", "lock/",
      "base/", "nghttp2/", "protozero/", "sys/"}},
    {"core/stores/zookeeper",
     {"stores/zookeeper/", "stores/engine.h", "engine/", "net/endpoint.h", "net/byte_stream.h", "net/url_parts.h",
      "lock/", "base/", "sys/"}},
    {"core/stores/s3",
     {"stores/s3/", "stores/engine.h", "engine/", "net/endpoint.h", "net/url_parts.h", "lock/", "base/", "curl/",
      "sys/"}},
    {"core/stores/quorum", {"stores/quorum/", "lock/", "base/", "sys/"}},
    {"core/lease", {"lease/", "lock/", "base/", "sys/"}},
    {"core/process", {"process/", "base/", "sys/", "linux/"}},
    {"core/run", {"run/", "process/", "lease/", "stores/open.h", "lock/", "base/", "sys/"}},
    {"core/doctor", {"doctor/", "stores/", "redis/", "lock/", "net/", "base/"}},
    {"cli/output", {"cli/output/", "run/", "doctor/", "lock/", "redis/acl.h", "base/", "nlohmann/", "sys/"}},
    {"cli/options",
     {"cli/options/", "cli/output/", "run/", "lock/", "stores/", "process/signals.h", "base/", "CLI/", "toml++/",
      "sys/"}},
    {"cli/help", {"cli/help/", "cli/options/", "cli/output/", "help/store_pages.h"}},
    {"cli/verbs",
     {"cli/", "run/", "doctor/", "lock/", "stores/", "redis/acl.h", "process/signals.h", "base/",
      "completions/scripts.h", "sys/"}},
    {"cli", {"cli/", "process/signals.h", "base/"}},
};

// The includes that start with no entry of `allowed`, as "file:line includes what".
std::vector<std::string> trespasses(const fs::path& file, const Allowed& allowed)
{
  static const std::regex include(R"(^\s*#\s*include\s*[<"]([^>"]*/[^>"]*)[>"].*)");
  std::vector<std::string> found;
  std::ifstream source(file);
  int number = 0;
  for (std::string line; std::getline(source, line);) {
    ++number;
    std::smatch match;
    if (!std::regex_match(line, match, include)) {
      continue;
    }
    const std::string what = match[1];
    const auto begins_it = [&](std::string_view start) { return what.starts_with(start); };
    if (std::none_of(allowed.begin(), allowed.end(), begins_it)) {
      found.push_back(file.string() + ":" + std::to_string(number) + " includes " + what);
    }
  }
  return found;
}

}  // namespace

TEST_CASE("floors: no module includes from above or beside")
{
  const fs::path root = RLOCK_SOURCE_DIR;
  for (const auto& [module, allowed] : floors) {
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(root / module)) {
      const std::string folder = fs::relative(entry.path().parent_path(), root).string();
      if (folder != module && floors.contains(folder)) {
        continue;  // has an entry of its own
      }
      if (entry.path().extension() == ".h" || entry.path().extension() == ".cpp") {
        for (const std::string& trespass : trespasses(entry.path(), allowed)) {
          FAIL_CHECK(trespass);
        }
      }
    }
  }
}

TEST_CASE("floors: every module has its floor")
{
  const fs::path root = RLOCK_SOURCE_DIR;
  for (const std::string part : {"core", "cli"}) {
    for (const fs::directory_entry& entry : fs::directory_iterator(root / part)) {
      if (entry.is_directory()) {
        const std::string module = part + "/" + entry.path().filename().string();
        CHECK_MESSAGE(floors.contains(module), module);
      }
    }
  }
}

namespace {

// How code can name a store.
const std::map<std::string, std::vector<std::string_view>> words_of_stores = {
    {"postgres", {"postgres", "psql", "libpq"}},
    {"mysql", {"mysql", "mariadb"}},
    {"mongo", {"mongo", "ferretdb"}},
    {"etcd", {"etcd"}},
    {"zookeeper", {"zookeeper", "curator", "kazoo"}},
    {"s3", {"s3", "amazon", "libcurl"}},
};

// The line without its comment, in lower case. A URL is no comment.
std::string code_of(std::string line)
{
  for (std::size_t at = line.find("//"); at != std::string::npos; at = line.find("//", at + 1)) {
    if (at == 0 || (line[at - 1] != ':' && line[at - 1] != '"')) {
      line.resize(at);
      break;
    }
  }
  std::ranges::transform(line, line.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return line;
}

// The stores that the file names, apart from that of its folder, as "file:line knows store".
std::vector<std::string> known_stores(const fs::path& root, const std::string& file)
{
  std::vector<std::string> found;
  std::ifstream source(root / file);
  int number = 0;
  for (std::string line; std::getline(source, line);) {
    ++number;
    const std::string code = code_of(std::move(line));
    for (const auto& [store, words] : words_of_stores) {
      const auto is_in_code = [&](std::string_view word) { return code.find(word) != std::string::npos; };
      if (!file.starts_with("core/stores/" + store + "/") && std::ranges::any_of(words, is_in_code)) {
        found.push_back(file + ":" + std::to_string(number) + " knows " + store);
      }
    }
  }
  return found;
}

}  // namespace

// The row of an engine, in its folder, says all that its URLs mean. Comments may name it.
TEST_CASE("floors: no other place knows a store")
{
  // The names by which a program without the engine knows it, and those of formats in records.
  const std::set<std::string> vocabulary = {"core/base/server_schemes.h", "core/lock/lock_kind.h"};
  const fs::path root = RLOCK_SOURCE_DIR;
  for (const std::string part : {"core", "cli"}) {
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(root / part)) {
      const std::string file = fs::relative(entry.path(), root).string();
      const bool is_code = entry.path().extension() == ".h" || entry.path().extension() == ".cpp";
      if (is_code && !vocabulary.contains(file)) {
        for (const std::string& known : known_stores(root, file)) {
          FAIL_CHECK(known);
        }
      }
    }
  }
  CHECK(known_stores(root, "core/base/server_schemes.h").size() > words_of_stores.size());  // it finds what is there
}
