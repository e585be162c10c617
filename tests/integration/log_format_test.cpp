// SPDX-License-Identifier: Apache-2.0
// --log-format json: every line on stderr is a JSON object.

#include "support/integration.h"
#include "support/json.h"

#include <regex>

using namespace rlock::test;

namespace {

std::vector<Json> objects(const std::string& lines)
{
  std::vector<Json> all;
  for (const std::string& line : lines_of(lines)) {
    CAPTURE(line);
    all.push_back(Json::parse(line));
    REQUIRE(all.back().is_object());
    CHECK(std::regex_match(all.back().at("time").text(), std::regex(R"(20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d\d\dZ)")));
  }
  return all;
}

// "level event key" of each line.
std::vector<std::string> shown(const std::string& lines)
{
  std::vector<std::string> all;
  for (const Json& line : objects(lines)) {
    const auto word = [&](const char* name) { return line.at(name).is_null() ? "-" : line.at(name).text(); };
    all.push_back(word("level") + " " + word("event") + " " + word("key"));
  }
  return all;
}

struct JsonLogFixture {
  RedisServer server;
  [[nodiscard]] std::vector<std::string> words(const std::string& verb, std::vector<std::string> more) const
  {
    more.insert(more.begin(), {verb, "-S", server.url(), "--log-format", "json"});
    return more;
  }
  [[nodiscard]] Finished rlock(const std::string& verb, std::vector<std::string> more) const
  {
    return run_rlock(words(verb, std::move(more)));
  }
  // Has the lock k when this returns.
  [[nodiscard]] Process hold(std::vector<std::string> options = {}) const
  {
    options.insert(options.end(), {"-k", "k", "--", "sleep", "100"});
    Process holder = start_rlock(words("run", std::move(options)));
    wait_until([&] { return is_held(server); }, "the lock is held");
    return holder;
  }
};

using Lines = std::vector<std::string>;

}  // namespace

#define JSON_LOG_CASE(title) CASE_WITH(JsonLogFixture, fixture, title)

JSON_LOG_CASE("log format: nothing on success, and with -v what was done")
{
  CHECK(fixture.rlock("run", {"-k", "k", "--", "true"}).err == "");
  CHECK(shown(fixture.rlock("run", {"-v", "-k", "k", "--", "true"}).err) ==
        Lines{"detail server k", "detail acquired k", "detail started k"});
  CHECK(shown(fixture.rlock("run", {"-v", "-k", "a", "-k", "b", "--", "true"}).err) ==
        Lines{"detail server -", "detail acquired a", "detail acquired b", "detail started -"});
}

JSON_LOG_CASE("log format: busy, in all verbs that wait")
{
  Process holder = fixture.hold();
  for (const Lines& call : {Lines{"run", "-n", "-k", "k", "true"}, Lines{"acquire", "-n", "-k", "k", "--lease", "5s"},
                            Lines{"once", "-n", "--for", "1h", "-k", "k", "true"}}) {
    const Finished end = fixture.rlock(call.front(), {call.begin() + 1, call.end()});
    CHECK(end.code == 75);
    CHECK(shown(end.err) == Lines{"notice busy k"});
    CHECK(objects(end.err).front().at("message").text().starts_with("k is busy, held by "));
  }
}

JSON_LOG_CASE("log format: waiting, and lost")
{
  Process holder = fixture.hold({"--ttl", "3s"});
  Process waiter = start_rlock(fixture.words("run", {"-k", "k", "--", "true"}));
  wait_until([&] { return !waiter.err().empty(); }, "it says for whom it waits");
  CHECK(shown(waiter.err()) == Lines{"notice waiting k"});
  fixture.server.command({"DEL", "k"});
  CHECK(holder.wait().code == 121);
  const Lines end = shown(holder.err());
  CHECK(end == Lines{"error lost k"});
  CHECK(waiter.wait().code == 0);
}

JSON_LOG_CASE("log format: forced")
{
  Process holder = fixture.hold();
  wait_until([&] { return listening(fixture.server) > 0; }, "the holder listens");
  CHECK(rlock_on(fixture.server, {"force-unlock", "-k", "k", "--yes"}).code == 0);
  CHECK(holder.wait().code == 121);
  CHECK(shown(holder.err()) == Lines{"notice requested k", "error forced k"});
}

JSON_LOG_CASE("log format: what cannot be done, and what cannot be meant")
{
  CHECK(shown(fixture.rlock("run", {"-k", "k", "no-such-command"}).err) == Lines{"error failed k"});
  CHECK(shown(fixture.rlock("run", {"--lease", "fast", "-k", "k", "true"}).err) == Lines{"error failed -"});
  const Finished down = run_rlock({"run", "-S", "unix:///nowhere.sock", "--log-format", "json", "-k", "k", "true"});
  CHECK(down.code == 69);
  CHECK(shown(down.err) == Lines{"error failed k"});
  expect_end(run_rlock({"run", "--log-format", "xml", "-k", "k", "true"}), 64,
             {err_is("rlock: --log-format: 'xml' is none of text, json\n")});
}

JSON_LOG_CASE("log format: every line is JSON, whatever a key holds")
{
  const std::string key = "qu\"o\\te é\xff";
  const Finished end = fixture.rlock("run", {"-v", "-k", key, "--", "true"});
  CHECK(objects(end.err).at(0).at("key").text() == "qu\"o\\te é\xef\xbf\xbd");
}

JSON_LOG_CASE("log format: in the config file, for flock too")
{
  ProcessOptions options;
  const auto file = make_temp_dir("config") / "rlock.toml";
  std::ofstream(file) << "log-format = \"json\"\nserver = \"" << fixture.server.url() << "\"\n";
  options.env["RLOCK_CONFIG"] = file;
  const Finished end = run_rlock({"flock", "--verbose", "k", "true"}, options);
  CHECK(shown(end.err) == Lines{"detail server k", "detail acquired k", "detail started k"});
}
