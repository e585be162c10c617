// SPDX-License-Identifier: Apache-2.0
// The table of JSON fields, rlock-json(5) and the real output of every verb agree.
#include "cli/help/help.h"
#include "cli/help/manual.h"
#include "cli/output/json.h"
#include "cli/verbs/dispatch.h"
#include "support/integration.h"
#include "support/paths.h"

#include <nlohmann/json.hpp>

#include <regex>
#include <set>

using namespace rlock::test;
using namespace rlock::cli;

namespace {

using Json = nlohmann::ordered_json;

const JsonObject& object_named(std::string_view name)
{
  const auto& all = json_objects();
  const auto found = std::find_if(all.begin(), all.end(), [&](const JsonObject& one) { return one.name == name; });
  REQUIRE_MESSAGE(found != all.end(), name);
  return *found;
}

// Compares printed objects with the table, and notes which rows were seen with a value that is not null.
class Comparison {
 public:
  void compare(const Json& printed, std::string_view object)
  {
    CAPTURE(object);
    CAPTURE(printed.dump());
    REQUIRE(printed.is_object());
    std::vector<std::string> names;
    for (const auto& [name, value] : printed.items()) {
      names.push_back(name);
    }
    std::vector<std::string> documented;
    for (const JsonField& field : object_named(object).fields) {
      documented.emplace_back(field.name);
    }
    CHECK(names == documented);
    for (const JsonField& field : object_named(object).fields) {
      CAPTURE(field.name);
      compare_value(printed.at(std::string(field.name)), field.type,
                    std::string(object) + "." + std::string(field.name));
    }
  }

  // Each line of `out`, as an object of this name.
  void compare_lines(const std::string& out, std::string_view object)
  {
    std::istringstream lines(out);
    std::size_t count = 0;
    for (std::string line; std::getline(lines, line); ++count) {
      compare(Json::parse(line), object);
    }
    CHECK_MESSAGE(count > 0, object);
  }

  [[nodiscard]] bool has_seen(const std::string& row) const { return m_seen.contains(row); }

 private:
  void compare_value(const Json& value, std::string_view type, const std::string& row)
  {
    constexpr std::string_view or_null = " or null";
    constexpr std::string_view array_of = "array of ";
    if (type.ends_with(or_null)) {
      if (!value.is_null()) {
        compare_value(value, type.substr(0, type.size() - or_null.size()), row);
      }
      return;
    }
    m_seen.insert(row);
    if (type.starts_with(array_of)) {
      REQUIRE(value.is_array());
      for (const Json& element : value) {
        compare_value(element, type.substr(array_of.size()), row);
      }
    } else if (type == "string") {
      CHECK(value.is_string());
    } else if (type == "integer") {
      CHECK(value.is_number_integer());
    } else if (type == "boolean") {
      CHECK(value.is_boolean());
    } else if (type == "time") {
      REQUIRE(value.is_string());
      CHECK(std::regex_match(value.get<std::string>(), std::regex(R"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d\d\dZ)")));
    } else {
      compare(value, type);
    }
  }

  std::set<std::string> m_seen;
};

}  // namespace

SERVER_CASE("json fields: every verb with --json prints the documented objects")
{
  Comparison comparison;

  const Finished taken = rlock_on(server, {"acquire", "-k", "stock", "--lease", "1m", "--label", "nightly", "--json"});
  CHECK_MESSAGE(taken.code == 0, taken.err);
  comparison.compare_lines(taken.out, "lease");
  const std::string token = Json::parse(taken.out).at("token");
  comparison.compare_lines(rlock_on(server, {"check", "stock", "--token", token, "--json"}).out, "lease");
  comparison.compare_lines(rlock_on(server, {"renew", "stock", "--token", token, "--json"}).out, "lease");
  const Finished shard = rlock_on(server, {"acquire", "-k", "shop", "--shards", "2", "--lease", "1m", "--json"});
  comparison.compare_lines(shard.out, "lease");
  comparison.compare_lines(rlock_on(server, {"status", "shop", "--json"}).out, "lock");

  Process waiter = start_on(server, {"run", "-k", "stock", "--", "true"});
  wait_until([&] { return has(rlock_on(server, {"status", "stock"}).out, "waiting"); }, "it waits");
  comparison.compare_lines(rlock_on(server, {"status", "stock", "free", "--json"}).out, "lock");
  comparison.compare_lines(rlock_on(server, {"list", "--json"}).out, "lock");
  comparison.compare_lines(rlock_on(server, {"ttl", "stock", "--json"}).out, "ttl");
  comparison.compare_lines(rlock_on(server, {"force-unlock", "stock", "--yes", "--now", "--json"}).out, "forced lock");
  CHECK(waiter.wait().code == 0);
  comparison.compare_lines(rlock_on(server, {"force-unlock", "stock", "--yes", "--json"}).out, "forced lock");
  comparison.compare_lines(rlock_on(server, {"events", "stock", "--json"}).out, "event");
  comparison.compare_lines(rlock_on(server, {"history", "stock", "--json"}).out, "run");

  const Words freeze{"freeze", "stock", "--for", "1m", "--reason", "why", "--json"};
  comparison.compare_lines(rlock_on(server, freeze).out, "frozen lock");
  comparison.compare_lines(rlock_on(server, {"status", "stock", "--json"}).out, "lock");
  comparison.compare_lines(rlock_on(server, {"thaw", "stock", "--json"}).out, "frozen lock");
  comparison.compare_lines(rlock_on(server, {"thaw", "stock", "--json"}).out, "frozen lock");

  CHECK(rlock_on(server, {"once", "-k", "migrate", "--for", "1h", "--", "true"}).code == 0);
  comparison.compare_lines(rlock_on(server, {"status", "migrate", "--json"}).out, "lock");
  comparison.compare_lines(rlock_on(server, {"forget", "migrate", "--json"}).out, "forgotten success");

  comparison.compare_lines(rlock_on(server, {"doctor", "--json"}).out, "finding");
  comparison.compare_lines(rlock_on(server, {"config", "--json"}).out, "setting");
  comparison.compare_lines(run_rlock({"acl", "-k", "app:*", "--json"}).out, "rules");
  comparison.compare_lines(run_rlock({"acl", "-S", "postgresql:///app", "--user", "shop", "--json"}).out, "rights");
  comparison.compare_lines(run_rlock({"version", "--json"}).out, "version");

  for (const std::string& line :
       lines_of(rlock_on(server, {"bench", "--for", "20ms", "--connections", "2", "--json"}).out)) {
    const Json printed = Json::parse(line);
    comparison.compare(printed, printed.at("measure") == "pairs" ? "pairs" : "measure");
  }

  Process watch = start_on(server, {"watch", "--json"});
  wait_until([&] { return watch.out().find('\n') != std::string::npos; }, "watch has printed a line");
  watch.signal(SIGTERM);
  watch.wait();
  comparison.compare_lines(watch.out().substr(0, watch.out().find('\n')), "lock");

  const Finished logged = rlock_on(server, {"run", "--log-format", "json", "-v", "-k", "log", "--", "true"});
  comparison.compare_lines(logged.err, "log line");

  for (const JsonObject& object : json_objects()) {
    for (const JsonField& field : object.fields) {
      const bool may_be_absent = field.type.ends_with(" or null");
      const std::string row = std::string(object.name) + "." + std::string(field.name);
      CHECK_MESSAGE((may_be_absent || comparison.has_seen(row)), row);
    }
  }
}

TEST_CASE("json fields: a verb is documented if and only if it has --json")
{
  for (const Verb* verb : all_verbs()) {
    CAPTURE(verb->name);
    const bool has_option = has(help_of(*verb), "\n  --json") || has(help_of(*verb), ", --json");
    bool is_documented = false;
    for (const JsonObject& object : json_objects()) {
      const auto& verbs = object.printed_by;
      is_documented |= object.name != "log line" && std::find(verbs.begin(), verbs.end(), verb->name) != verbs.end();
    }
    CHECK(has_option == is_documented);
  }
}

TEST_CASE("json fields: the manual page and help have every object and every field")
{
  const std::string page = text_of(RLOCK_MAN_DIR "/rlock-json.5");
  CHECK(has(page, mdoc_of_json()));
  const std::string help = help_of_json();
  for (const JsonObject& object : json_objects()) {
    CHECK(has(page, "\n.Ss " + std::string(object.name) + "\n"));
    CHECK(has(help, "\n" + std::string(object.name) + ": "));
    for (const JsonField& field : object.fields) {
      CHECK(has(help, "\n  " + std::string(field.name) + " "));
    }
  }
}
