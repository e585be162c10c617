// SPDX-License-Identifier: Apache-2.0
// Every file of the corpora passes its fuzzer, also without libFuzzer.
#include "fuzz/fuzzer.h"
#include "support/paths.h"
#include "support/text_file.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <string>

using namespace rlock::test;

namespace {

const std::filesystem::path corpus = std::filesystem::path(RLOCK_SOURCE_DIR) / "tests/fuzz/corpus";

std::string broken(const Fuzzer& fuzzer, const std::string& bytes)
{
  try {
    fuzzer.run(bytes);
    return "";
  } catch (const std::exception& what) {
    return what.what();
  }
}

}  // namespace

TEST_CASE("fuzz: every file of the corpora keeps the promises of its fuzzer")
{
  for (const Fuzzer& fuzzer : fuzzers()) {
    std::size_t files = 0;
    for (const auto& file : std::filesystem::directory_iterator(corpus / fuzzer.name)) {
      CAPTURE(file.path().string());
      CHECK(broken(fuzzer, text_of(file.path())) == "");
      ++files;
    }
    CAPTURE(fuzzer.name);
    CHECK(files > 0);
  }
}

TEST_CASE("fuzz: a fuzzer ends at the end of its input, wherever that is")
{
  for (const Fuzzer& fuzzer : fuzzers()) {
    CAPTURE(fuzzer.name);
    CHECK(broken(fuzzer, "") == "");
    CHECK(broken(fuzzer, "\n") == "");
    CHECK(broken(fuzzer, "9") == "");
  }
}
