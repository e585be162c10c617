// SPDX-License-Identifier: Apache-2.0
// Every option in a verb's help is accepted by the verb.
#include "support/integration.h"
#include "support/paths.h"

#include <regex>

#include <unistd.h>

using namespace rlock::test;

namespace {

struct Offered {
  std::string name;   // one of several names of the option
  std::string value;  // its name in the help; empty: a flag
};

std::string help_of(const std::string& verb) { return run_rlock({"help", verb}).out; }

std::vector<std::string> verbs()
{
  std::istringstream lines(run_rlock({"help"}).out);
  std::vector<std::string> found;
  bool among_verbs = false;
  for (std::string line; std::getline(lines, line) && !(among_verbs && line.empty());) {
    if (among_verbs) {
      found.push_back(line.substr(2, line.find(' ', 2) - 2));
    }
    among_verbs |= line == "Verbs:";
  }
  return found;
}

// Server options stand in one row: "  -S, --server URL; --server-timeout DUR;".
std::string an_option_a_line(const std::string& help)
{
  const std::size_t begin = help.find("\nServer (");
  const std::size_t end = std::min(help.find("\n\n", begin), help.size());
  return begin == std::string::npos
             ? help
             : help.substr(0, begin) + std::regex_replace(help.substr(begin, end - begin), std::regex("; *"), "\n  ") +
                   help.substr(end);
}

// "  -w, --wait, --timeout DUR" is three options.
std::vector<Offered> options_of(const std::string& verb)
{
  const std::regex pattern("^  (-[^ ,]+(?:, -[^ ,]+)*)(?: ([^ ]+))?(?:  .*)?$");
  std::vector<Offered> found;
  for (const std::string& line : lines_of(an_option_a_line(help_of(verb)))) {
    std::smatch parts;
    if (std::regex_match(line, parts, pattern)) {
      std::istringstream names(parts[1].str());
      for (std::string name; names >> name;) {
        found.push_back({name.ends_with(',') ? name.substr(0, name.size() - 1) : name, parts[2].str()});
      }
    }
  }
  return found;
}

struct HelpFixture {
  HelpFixture()
      : dir(make_temp_dir("help")), server("unix://" + (dir / "nobody").string()), file((dir / "file").string())
  {
    std::ofstream(file) << "word\n";
  }

  // All values of this type: literals, or one example.
  [[nodiscard]] Words values_of(const std::string& type) const
  {
    const std::map<std::string, std::string> named{
        {"DUR", "1s"},   {"SECS", "1"}, {"N", "1"},         {"PID", std::to_string(::getpid())},
        {"SIG", "TERM"}, {"TEXT", "x"}, {"URL", server},    {"FILE", file},
        {"KEY", "k"},    {"T", "a:1"},  {"STRING", "true"}, {"TIME", "22:00"}};
    Words values;
    std::istringstream words(type);
    for (std::string word; std::getline(words, word, '|');) {
      const auto known = named.find(word);
      values.push_back(known == named.end() ? word : known->second);
    }
    return values;
  }

  std::filesystem::path dir;
  std::string server;  // without a server, so nothing happens
  std::string file;
};

// Other words that a verb needs, before and after the option. One of these must work.
struct Rest {
  Words before;
  Words after;
};

std::vector<Rest> rests_of(const std::string& verb)
{
  const std::string self = std::to_string(::getpid());
  const std::map<std::string, std::vector<Rest>> known{
      {"run", {{{"-k", "k"}, {"--", "true"}}, {{}, {"--", "true"}}, {{"-k", "k", "--latest"}, {"--", "true"}}}},
      {"flock", {{{}, {"k", "true"}}, {{}, {"k"}}}},
      {"once",
       {{{"-k", "k", "--for", "1h"}, {"--", "true"}},
        {{"--for", "1h"}, {"--", "true"}},
        {{"-k", "k"}, {"--", "true"}},
        {{"-k", "k", "--for", "1h", "--attempts", "2"}, {"--", "true"}}}},
      {"acquire",
       {{{"-k", "k", "--pid", self, "--export"}, {}},
        {{"-k", "k", "--pid", self}, {}},
        {{"-k", "k", "--lease", "20s"}, {}},
        {{"-k", "k"}, {}},
        {{"--lease", "20s"}, {}},
        {{"-k", "k", "--lease", "20s", "--json"}, {}}}},
      {"renew", {{{"-k", "k", "--token", "a:1"}, {}}, {{"--token", "a:1"}, {}}}},
      {"release", {{{"-k", "k", "--token", "a:1"}, {}}, {{"--token", "a:1"}, {}}}},
      {"check", {{{"-k", "k", "--token", "a:1"}, {}}, {{"--token", "a:1"}, {}}}},
      {"force-unlock", {{{"-k", "k", "--yes"}, {}}, {{"-k", "k"}, {}}, {{"--yes"}, {}}}},
      {"freeze", {{{"k", "--for", "1h", "--reason", "x"}, {}}, {{"k", "--reason", "x"}, {}}}},
      {"completion", {{{}, {"bash"}}}},
  };
  const auto rests = known.find(verb);
  return rests != known.end() ? rests->second : std::vector<Rest>{{{"-k", "k"}, {}}, {{}, {}}, {{}, {"k"}}};
}

// Some options need several servers, TLS, or another store.
std::vector<Words> servers_of(const HelpFixture& fixture)
{
  return {{},
          {"-S", fixture.server, "-S", fixture.server + "2", "-S", fixture.server + "3"},
          {"-S", "rediss://127.0.0.1:1", "--cert", fixture.file},
          {"-S", "etcd://127.0.0.1:1"},
          {"-S", "zookeeper://127.0.0.1:1"}};
}

Finished tried(const HelpFixture& fixture, const std::string& verb, const Rest& rest, const Words& option,
               const Words& servers)
{
  Words words{RLOCK_BINARY, verb};
  words.insert(words.end(), rest.before.begin(), rest.before.end());
  words.insert(words.end(), option.begin(), option.end());
  words.insert(words.end(), servers.begin(), servers.end());
  words.insert(words.end(), rest.after.begin(), rest.after.end());
  Process process(words, {.env = {{"RLOCK_SERVER", fixture.server}}});
  const Exit exit = process.wait();
  return {.code = exit.code, .signal = exit.signal, .out = process.out(), .err = process.err()};
}

bool is_taken(const HelpFixture& fixture, const std::string& verb, const Words& option, std::string& refusals)
{
  for (const Rest& rest : rests_of(verb)) {
    for (const Words& servers : servers_of(fixture)) {
      const Finished end = tried(fixture, verb, rest, option, servers);
      if (end.code != 64) {
        return true;
      }
      refusals += end.err;
    }
  }
  return false;
}

}  // namespace

TEST_CASE("help: no verb offers an option that it refuses")
{
  const HelpFixture fixture;
  const auto all = verbs();
  REQUIRE(all.size() == 25);
  for (const std::string& verb : all) {
    const auto offered = options_of(verb);
    CAPTURE(verb);
    CHECK(offered.size() >= 2);  // -h and --help
    for (const Offered& option : offered) {
      const Words values = option.value.empty() ? Words{""} : fixture.values_of(option.value);
      for (const std::string& value : values) {
        const Words words = value.empty() ? Words{option.name} : Words{option.name, value};
        std::string refusals;
        CHECK_MESSAGE(is_taken(fixture, verb, words, refusals), verb << " " << option.name << " " << value << "\n"
                                                                     << refusals);
      }
    }
  }
}
