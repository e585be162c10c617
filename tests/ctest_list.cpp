// SPDX-License-Identifier: Apache-2.0
// The reporter "ctest" of doctest: `--list-test-cases --reporters=ctest` writes the commands by which ctest knows each case, with its
// labels and limits. tests/CMakeLists.txt runs it after each build.
#include "support/paths.h"
#include "support/quiet_listener.h"

#include <doctest/doctest.h>

#include <fnmatch.h>
#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

namespace {

// A sanitizer makes the tests slower, and the judge would call everything late.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool is_sanitized = true;
#else
constexpr bool is_sanitized = false;
#endif
constexpr int longest_case = is_sanitized ? 1200 : 120;    // seconds
constexpr int longest_series = is_sanitized ? 1200 : 400;  // of fault/ and of many locks

// Kinds of servers on which the cases of the suites `topology` and `topology-quick` run as well (support/topology.h).
constexpr std::array topologies{"tcp",     "tls",     "acl",       "sentinel",   "cluster",
                                "quorum3", "quorum5", "postgres",  "mariadb",    "mongo",
                                "etcd",    "etcd3",   "zookeeper", "zookeeper3", "s3"};
constexpr const char* on_engine = "on the record engine: ";

bool matches(const std::string& pattern, const std::string& text)
{
  return ::fnmatch(pattern.c_str(), text.c_str(), 0) == 0;
}

// A file of patterns, one a line: "? " begins one of source files below tests/, without _test.cpp; "! " one of the names of tests;
// "- " one of names that are left out again.
class Patterns {
 public:
  explicit Patterns(const std::string& path)
  {
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) {
      if (line.starts_with("? ")) {
        m_sources.push_back(line.substr(2));
      } else if (line.starts_with("! ")) {
        m_names.push_back(line.substr(2));
      } else if (line.starts_with("- ")) {
        m_left_out.push_back(line.substr(2));
      }
    }
  }

  [[nodiscard]] bool contain(const std::string& source, const std::string& name) const
  {
    const auto fits = [](const std::string& text) { return [&](const auto& each) { return matches(each, text); }; };
    return (std::ranges::any_of(m_sources, fits(source)) || std::ranges::any_of(m_names, fits(name))) &&
           std::ranges::none_of(m_left_out, fits(name));
  }

 private:
  std::vector<std::string> m_sources;
  std::vector<std::string> m_names;
  std::vector<std::string> m_left_out;
};

// "lua/queue" of ".../tests/lua/queue_test.cpp".
std::string source_of(std::string_view file)
{
  constexpr std::string_view folder = "tests/";
  constexpr std::string_view end = "_test.cpp";
  file.remove_prefix(file.rfind(folder) + folder.size());
  return std::string(file.ends_with(end) ? file.substr(0, file.size() - end.size()) : file);
}

std::string quoted(const std::string& text) { return "[==[" + text + "]==]"; }

class CtestList final : public rlock::test::QuietListener {
 public:
  explicit CtestList(const doctest::ContextOptions& options) : m_out(*options.cout) {}

  void report_query(const doctest::QueryData& query) override
  {
    for (unsigned each = 0; each < query.num_data; ++each) {
      list(*query.data[each]);
    }
  }

 private:
  // One test of ctest: the case, on the kind of server that `prefix` and `further` tell.
  struct Test {
    std::string prefix;
    std::string label;
    std::string limits;   // properties of ctest
    std::string further;  // an argument
  };

  void list(const doctest::TestCaseData& data)
  {
    const std::string name = data.m_name;
    const std::string source = source_of(data.m_file.c_str());
    const std::string suite = data.m_test_suite;
    const std::string folder = source.substr(0, source.find('/'));
    const std::string limit = "TIMEOUT " + std::to_string(longest_case);
    if (folder == "unit" || folder == "fuzz" || folder == "sim") {
      write(name, source, {.prefix = "", .label = folder == "sim" ? "sim" : "unit", .limits = limit, .further = ""});
      return;
    }
    if (suite == "judge-faults") {
      if (!is_sanitized) {
        write(name, source, {.prefix = "", .label = "on-judge", .limits = "COST 4 " + limit, .further = ""});
      }
      return;
    }
    write(name, source, {.prefix = "", .label = "integration", .limits = limits_of(name, suite), .further = ""});
    if (folder == "lua" && !m_redis_alone.contain(source, name)) {
      write(name, source,
            {.prefix = on_engine,
             .label = "on-engine-quick",
             .limits = "COST 1 ENVIRONMENT [==[RLOCK_TEST_SERVER=" RLOCK_ENGINE_SERVER "]==] " + limit,
             .further = ""});
    }
    if (suite.starts_with("topology")) {
      for (const std::string topology : topologies) {
        write(name, source,
              {.prefix = "on " + topology + ": ",
               .label = "on-" + topology + suite.substr(std::string_view("topology").size()),
               .limits = "COST 1 " + limit,
               .further = "--on=" + topology});
      }
    }
  }

  // Without times of an earlier run ctest starts the tests with a high COST first.
  static std::string limits_of(const std::string& name, const std::string& suite)
  {
    const std::string series = " TIMEOUT " + std::to_string(longest_series);
    if (name.starts_with("many locks:")) {
      return "COST 4 RUN_SERIAL TRUE" + series;
    }
    // Each of these keeps many short leases at once (fault/many_runs.h), so they run one after the other. On a busy machine fewer
    // runs go on at a time.
    if (name.starts_with("fault:")) {
      return "COST 3 RESOURCE_LOCK fault" + series;
    }
    return (suite == "topology" ? "COST 3" : "COST 2") + (" TIMEOUT " + std::to_string(longest_case));
  }

  void write(const std::string& name, const std::string& source, const Test& test)
  {
    std::string pattern;  // of doctest, where a comma separates patterns
    for (const char each : name) {
      pattern += each == ',' ? "\\," : std::string(1, each);
    }
    const std::string title = quoted(test.prefix + name);
    const bool is_default = m_default.contain(test.prefix + source, test.prefix + name);
    m_out << "add_test(" << title << ' ' << quoted(std::filesystem::read_symlink("/proc/self/exe").string()) << ' '
          << quoted("--test-case=" + pattern) << ' ' << test.further << ")\nset_tests_properties(" << title
          << " PROPERTIES LABELS \"" << test.label << (is_default ? ";default" : "")
          << "\" SKIP_REGULAR_EXPRESSION \"skipped here: \" " << test.limits << ")\n";  // support/skip.h prints this
  }

  std::ostream& m_out;
  const Patterns m_default{RLOCK_SOURCE_DIR "/tests/default_suite.txt"};
  const Patterns m_redis_alone{RLOCK_SOURCE_DIR "/tests/lua/redis_alone.txt"};
};
DOCTEST_REGISTER_REPORTER("ctest", 1, CtestList);

}  // namespace
