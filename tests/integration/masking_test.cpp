// SPDX-License-Identifier: Apache-2.0
// Secrets in command lines stay off the server and out of every output; text of servers, keys and labels is escaped.
#include "support/clean_text.h"
#include "support/integration.h"
#include "support/job_runner.h"

using namespace rlock::test;
using namespace std::string_literals;

namespace {

const std::string secret = "S3cretValue";

// The values of all keys, as the server dumps them. A dump does not compress short values.
std::string stored(const RedisServer& server)
{
  std::string all;
  for (const std::string& key : as_texts(server.command({"KEYS", "*"}))) {
    for (const Words& read : std::vector<Words>{{"HVALS", key}, {"LRANGE", key, "0", "-1"}, {"GET", key}}) {
      all += show(server.command(read));
    }
  }
  return all;
}

std::string outputs(const RedisServer& server)
{
  std::string all;
  for (const Words& words : std::vector<Words>{{"status", "k"},
                                               {"status", "--json", "k"},
                                               {"list"},
                                               {"list", "--json"},
                                               {"list", "--format", "prometheus"},
                                               {"events"},
                                               {"events", "--json"},
                                               {"run", "-n", "-k", "k", "--", "true"},
                                               {"force-unlock", "k"}}) {
    const Finished end = rlock_on(server, words);
    all += end.out + end.err;
  }
  return all;
}

// A job that waits for the file `go`, with secrets in its arguments.
Words secretive_job(const std::filesystem::path& go)
{
  return {"sh",
          "-c",
          "TOKEN='" + secret + "'; until test -e \"$0\"; do sleep 0.05; done",
          go.string(),
          "--password=" + secret,
          "--api-key",
          secret,
          "redis://u:" + secret + "@h"};
}

// The words that a shell reads in the text.
std::string words_in(const std::string& text, const std::string& shell)
{
  Process reader({shell, "-c", "printf '%s|' " + text});
  CHECK(reader.wait() == success);
  return reader.out();
}

std::string after(const std::string& text, const std::string& beginning)
{
  const auto at = text.find(beginning);
  REQUIRE_MESSAGE(at != std::string::npos, text);
  return text.substr(at + beginning.size(), text.find('\n', at) - at - beginning.size());
}

}  // namespace

TEST_CASE("commands: a shell reads the words of what is shown")
{
  struct Row {
    Words words;
    std::string shell;
  };
  const Row rows[] = {
      {{"it's", "a\\b", "$HOME `x`", "", "*", "\"q\""}, "sh"},
      {{"it's\nso", "tab\t\\", "\xff", "\xe2\x80\x8b"}, "bash"},
  };
  for (const Row& row : rows) {
    const RedisServer server;
    const Words job = joined({"sh", "-c", "sleep 60", "sh"}, row.words);
    Process holder = held_run(server, {}, job);
    std::string expected;
    for (const std::string& word : job) {
      expected += word + "|";
    }
    const std::string shown = after(rlock_on(server, {"status", "k"}).out, "  running  ");
    CHECK(words_in(shown, row.shell) == expected);
    CHECK(has(rlock_on(server, {"list"}).out, shown));
    CHECK(has(rlock_on(server, {"run", "-n", "-k", "k", "--", "true"}).err, ", running " + shown));
    holder.signal(SIGTERM);
    holder.wait();
    CHECK(has(rlock_on(server, {"history", "k"}).out, shown));
  }
}

TEST_CASE("masking: no secret of a command line is stored, shown or logged, whichever verb runs it")
{
  for (const Words& front : std::vector<Words>{{"run", "-v", "-k", "k"},
                                               {"run", "-v", "-s", "-k", "k"},
                                               {"run", "-v", "--permits", "1", "-k", "k"},
                                               {"run", "-v", "--format", "string", "-k", "k"},
                                               {"once", "-v", "-k", "k", "--for", "1h"},
                                               {"flock", "--verbose", "k"}}) {
    CAPTURE(front.front());
    const RedisServer server;
    const auto go = make_temp_dir("masking") / "go";
    const Words words = joined(front, secretive_job(go));
    Process holder = start_on(server, words);
    wait_until([&] { return is_held(server); }, "it holds the lock");
    CHECK(has(stored(server), "--password=***"));
    CHECK_FALSE(has(stored(server), secret));

    if (front.front() == "run" && front.size() == 4) {
      Process waiter = start_on(server, words);
      wait_until([&] { return as_int(server.command({"EXISTS", "rlock:waiters:{k}"})) == 1; }, "a second one waits");
      CHECK_FALSE(has(stored(server), secret));
      const std::string shown = outputs(server);
      CHECK(has(shown, "--api-key ***"));
      CHECK_FALSE(has(shown, secret));
      waiter.signal(SIGTERM);
      waiter.wait();
      CHECK_FALSE(has(waiter.err(), secret));
    }
    std::ofstream(go).close();
    expect_end(holder, Exit{0}, {err_lacks(secret)});
    CHECK_FALSE(has(stored(server), secret));
  }
}

SERVER_CASE("masking: a lock that is acquired for a script stores its command line without secrets")
{
  Process script({"sh", "-c", "sleep 60; :", "--password=" + secret, "--token", secret});
  (void)succeeded(rlock_on(server, {"acquire", "-k", "k", "--pid", std::to_string(script.pid())}));
  CHECK(has(stored(server), "--token ***"));
  CHECK_FALSE(has(stored(server), secret));
  script.signal(SIGKILL);
  script.wait();
}

SERVER_CASE("escaping: text of servers, keys and labels is shown without control characters and misleading ones")
{
  std::string nasty =
      "a\x9b"
      "31m\xc2\x9b"
      "2J\x1b[1m\x7f\xff";
  std::string key =
      "a\x9b"
      "31m\xc2\x9b"
      "2J\xff";
  for (const std::string_view character : misleading) {
    nasty += character;
    key += character;
  }
  const std::string record = "host=" + nasty + "\npid=71\nuser=" + nasty + "\ncommand=" + nasty + "\nlabel=" + nasty +
                             "\nsince=1790000000000\nlease=30000\nauto=1";
  for (const std::string& lock : {std::string("k"), key}) {
    server.command({"HSET", lock, nasty, "1"});
    server.command({"PEXPIRE", lock, "60000"});
    server.command({"HSET", "rlock:holder:{" + lock + "}", nasty, record, "hold:" + nasty, nasty});
    server.command({"PEXPIRE", "rlock:holder:{" + lock + "}", "60000"});
    const std::string event("1790000000000000\0acquired\0", 26);
    server.command({"RPUSH", "rlock:events:{" + lock + "}", event + nasty + std::string("\0info\0", 6) + record,
                    std::string("1790000001.5\0forced\0", 20) + nasty + std::string("\0by\0", 4) + nasty});
  }
  CHECK(is_clean(outputs(server)));
  Words words{"run", "-n", "-v", "-S", server.url(), "-k", key, "--", "true"};
  const Finished busy = run_rlock(words);
  CHECK(busy.code == 75);
  CHECK_MESSAGE(is_clean(busy.err), busy.err);
  words.insert(words.begin() + 1, "--log-format=json");
  CHECK(is_clean(run_rlock(words).err));
  CHECK(is_clean(run_rlock({"status", "--json", "-S", server.url(), key}).out));
  const auto told = make_temp_dir("escaping") / "told";
  CHECK(run_rlock({"run", "-n", "-S", server.url(), "--notify", "printf %s \"$RLOCK_MESSAGE\" > " + told.string(), "-k",
                   key, "--", "true"})
            .code == 75);
  CHECK_MESSAGE(is_clean(text_of(told)), text_of(told));
  CHECK(has(text_of(told), "2J"));
  CHECK(is_clean(run_rlock({"acl", "-k", key}).out));
}

SERVER_CASE("escaping: the requester of a force-unlock is named without control characters")
{
  const auto go = make_temp_dir("escaping") / "go";
  Process holder =
      start_on(server, {"run", "-k", "k", "--ttl", "3s", "--", "sh", "-c", "touch " + go.string() + "; exec sleep 60"});
  wait_until([&] { return std::filesystem::exists(go); }, "the job runs");
  const std::string owner = as_texts(server.command({"HKEYS", "k"})).at(0);
  server.command({"HSET", "rlock:force:{k}", owner,
                  "eve\x9b"
                  "2J\n\x1b[1m"});
  server.command({"PEXPIRE", "rlock:force:{k}", "60000"});
  CHECK(holder.wait(Millis{30'000}).code == 121);
  CHECK_MESSAGE(has(holder.err(), "force-unlocked by eve\\x9b2J\\n\\x1b[1m"), holder.err());
}

SERVER_CASE("labels: a label of more than 256 bytes is refused, a longer one of a server is cut")
{
  const std::string fits(256, 'l');
  for (const Words& front :
       std::vector<Words>{{"run", "-k", "k"}, {"once", "--for", "1h", "-k", "k"}, {"flock", "k"}}) {
    Words words = joined(front, {"true"});
    words.insert(words.begin() + 1, {"--label", fits + "l"});
    expect_end(rlock_on(server, words), 64, {err_has("--label: the text has 257 bytes, at most 256")});
    words[2] = fits;
    CHECK(rlock_on(server, words).code == 0);
  }
  CHECK(rlock_on(server, {"acquire", "-k", "k", "--lease", "1m", "--label", fits + "l"}).code == 64);
  CHECK_FALSE(is_held(server));

  server.command({"HSET", "k", "old:1", "1"});
  server.command({"PEXPIRE", "k", "60000"});
  server.command(
      {"HSET", "rlock:holder:{k}", "old:1", "host=web1\nlabel=" + std::string(100'000, 'x'), "hold:old:1", "old:1"});
  const Finished shown = run_rlock({"status", "--json", "-S", server.url(), "k"});
  CHECK(has(shown.out, "\"label\":\"" + std::string(256, 'x') + "\""));
}
