// SPDX-License-Identifier: Apache-2.0
// Every exit code, and that nothing is left on the server.
#include "support/integration.h"

using namespace rlock::test;

namespace {

Finished run_on(const RedisServer& server, std::vector<std::string> words, const ProcessOptions& options = {})
{
  words.insert(words.begin(), {"run", "-S", server.url()});
  return run_rlock(std::move(words), options);
}

bool nothing_left(const RedisServer& server)
{
  return as_texts(server.command({"KEYS", "rlock:holder:*"})).empty() && as_int(server.command({"EXISTS", "k"})) == 0;
}

// No lock, no fencing number and no queue: the history tells of a command that could not be executed.
bool only_history_left(const RedisServer& server)
{
  return as_texts(server.command({"KEYS", "*"})) == std::vector<std::string>{"rlock:events:{k}"};
}

bool one_line(const std::string& text) { return text.starts_with("rlock: ") && count(text, "\n") == 1; }

}  // namespace

TEST_SUITE_BEGIN("topology-quick");

SERVER_CASE("exit codes: the job's own, exactly, and not a word")
{
  for (const int code : {0, 1, 7, 64, 121, 255}) {
    CAPTURE(code);
    expect_end(run_on(server, {"-k", "k", "--", "sh", "-c", "exit " + std::to_string(code)}), code, {err_is("")});
    CHECK(nothing_left(server));
  }
}

SERVER_CASE("exit codes: a job that died of a signal takes rlock along by the same one")
{
  for (const int signal : {SIGTERM, SIGKILL, SIGSEGV, SIGHUP, SIGINT, SIGQUIT, SIGUSR1, SIGPIPE}) {
    CAPTURE(signal);
    const Finished end = run_on(server, {"-k", "k", "--", "sh", "-c", "kill -" + std::to_string(signal) + " $$"});
    CHECK(end.code == -1);
    CHECK(end.signal == signal);
    CHECK(nothing_left(server));
  }
}

SERVER_CASE("exit codes: 126 and 127 are told before the lock is taken")
{
  const std::filesystem::path dir = make_temp_dir("commands");
  std::ofstream(dir / "plain") << "echo no\n";
  struct Row {
    std::string command;
    int code;
  };
  for (const Row& row : {Row{"no-such-command-at-all", 127}, Row{(dir / "missing").string(), 127},
                         Row{(dir / "plain").string(), 126}, Row{dir.string(), 126}}) {
    CAPTURE(row.command);
    const Finished end = run_on(server, {"-k", "k", "--", row.command});
    CHECK(end.code == row.code);
    CHECK(one_line(end.err));
    CHECK(only_history_left(server));
  }
}

SERVER_CASE("exit codes: 126 and 127 that only exec can tell, and the lock is released")
{
  const std::filesystem::path script = make_temp_dir("commands") / "script";
  std::ofstream(script) << "#!/no/such/interpreter\n";
  std::filesystem::permissions(script, std::filesystem::perms::owner_all);
  const Finished end = run_on(server, {"-k", "k", "--", script.string()});
  CHECK(end.code == 127);
  CHECK(one_line(end.err));
  CHECK(nothing_left(server));
}

SERVER_CASE("exit codes: 75 or the one asked for when it is busy")
{
  Process holder = held_run(server);

  const Finished without_waiting = run_on(server, {"-k", "k", "-n", "--", "true"});
  expect_end(without_waiting, 75, {err_has("k is busy, held by ")});
  CHECK(one_line(without_waiting.err));
  CHECK(run_on(server, {"-k", "k", "-w", "0", "--", "true"}).code == 75);
  CHECK(run_on(server, {"-k", "k", "-w", "0.2", "-E", "0", "--", "true"}).code == 0);
  CHECK(run_on(server, {"-k", "k", "-n", "-E", "201", "-q", "--", "true"}).err == "");
  CHECK(as_int(server.command({"HLEN", "k"})) == 1);
}

TEST_CASE("exit codes: 69 when there is no server, with a line that tells how to name another")
{
  const std::filesystem::path nowhere = make_temp_dir("nowhere") / "redis.sock";
  for (const std::string& url : {std::string("redis://127.0.0.1:1"), "unix://" + nowhere.string()}) {
    CAPTURE(url);
    const Finished end = run_rlock({"run", "-S", url, "-k", "k", "--", "echo", "ran"});
    expect_end(end, 69, {out_is("")});
    CHECK(one_line(end.err));
    CHECK(has(end.err, "-S names another server"));
    CHECK_FALSE(has(end.err, "local:"));  // not for a caller that has named a server
    CHECK(has(end.err, url));
  }
}

TEST_CASE("exit codes: 69 when the server cannot now, and the job did not run")
{
  RedisServer server({.args = {"--maxmemory", "1", "--maxmemory-policy", "noeviction"}});
  const Finished full = run_on(server, {"-k", "k", "--", "echo", "ran"});
  CHECK(full.code == 69);
  CHECK(one_line(full.err));
  CHECK(full.out == "");

  server.stop_signal();
  const Finished silent = run_on(server, {"--server-timeout", "300ms", "-k", "k", "--", "echo", "ran"});
  server.cont();
  CHECK(silent.code == 69);
  CHECK(one_line(silent.err));
  CHECK(silent.out == "");
}

TEST_CASE("exit codes: 77 for a password that is wrong or missing, which is never shown")
{
  const RedisServer server({.password = test_password});
  const std::string path = server.socket_path().string();
  CHECK(run_on(server, {"-k", "k", "--", "true"}).code == 77);
  const Finished wrong = run_rlock({"run", "-S", "unix://:wrong-secret@" + path, "-k", "k", "--", "true"});
  CHECK(wrong.code == 77);
  CHECK(one_line(wrong.err));
  CHECK_FALSE(has(wrong.err, "wrong-secret"));
  CHECK(run_rlock({"run", "-S", "unix://:hunter2@" + path, "-k", "k", "--", "true"}).code == 0);
  CHECK(run_on(server, {"-k", "k", "--", "true"}, {.env = {{"REDISCLI_AUTH", test_password}}}).code == 0);
}

SERVER_CASE("exit codes: 78 when the key holds something else, and it is left alone")
{
  struct Row {
    std::vector<std::string> set_up;
    const char* says;
  };
  const Row rows[] = {{{"SET", "k", "x"}, "string"}, {{"RPUSH", "k", "x"}, "list"}};
  for (const Row& row : rows) {
    server.command({"FLUSHALL"});
    server.command(row.set_up);
    const Finished end = run_on(server, {"-k", "k", "--", "echo", "ran"});
    CHECK(end.code == 78);
    CHECK(one_line(end.err));
    CHECK(has(end.err, row.says));
    CHECK(end.out == "");
    CHECK(as_int(server.command({"DBSIZE"})) == 1);
  }
}

SERVER_CASE("exit codes: 124 when --max-runtime is over")
{
  const Finished end = run_on(server, {"-k", "k", "--max-runtime", "300ms", "--", "sleep", "30"});
  CHECK(end.code == 124);
  CHECK(one_line(end.err));
  CHECK(nothing_left(server));
}

SERVER_CASE("exit codes: bad input gets one line, the right code, and leaves nothing")
{
  struct Row {
    const char* why;
    std::vector<std::string> words;
    int code;
    const char* names;
  };
  const Row rows[] = {
      {"no key", {"--", "true"}, 64, "-k KEY"},
      {"empty key", {"-k", "", "--", "true"}, 64, "key"},
      {"huge key", {"-k", std::string(65'536, 'k'), "--", "true"}, 64, "65536"},
      {"newline", {"-k", "a\nb", "--", "true"}, 64, "a\\nb"},
      {"brace", {"-k", "{", "--", "true"}, 78, "brace"},
      {"no command", {"-k", "k"}, 64, "command"},
      {"no command after --", {"-k", "k", "--"}, 64, "command"},
      {"zero ttl", {"-k", "k", "--ttl", "0", "--", "true"}, 64, "--ttl"},
      {"negative wait", {"-k", "k", "-w", "-1", "--", "true"}, 64, "--wait"},
      {"nonsense lease", {"-k", "k", "--lease", "soon", "--", "true"}, 64, "--lease"},
      {"overflow", {"-k", "k", "--max-runtime", "99999999999999999999d", "--", "true"}, 64, "--max-runtime"},
      {"bad signal", {"-k", "k", "--signal", "NOPE", "--", "true"}, 64, "--signal"},
      {"bad choice", {"-k", "k", "--leftovers", "eat", "--", "true"}, 64, "--leftovers"},
      {"bad code", {"-k", "k", "-E", "600", "--", "true"}, 64, "--conflict-exit-code"},
      {"unknown option", {"-k", "k", "--nope", "--", "true"}, 64, "--nope"},
      {"option of others",
       {"-k", "k", "--for", "3h", "--", "true"},
       64,
       "(it belongs to rlock once, rlock freeze, rlock bench)"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.why);
    const Finished end = run_on(server, row.words);
    CAPTURE(end.err);
    expect_end(end, row.code, {out_is("")});
    CHECK(one_line(end.err));
    CHECK(has(end.err, row.names));
  }
  CHECK(as_int(server.command({"DBSIZE"})) == 0);
  const Finished empty_command = run_on(server, {"-k", "k", "--", ""});
  expect_end(empty_command, 127, {out_is("")});
  CHECK(one_line(empty_command.err));
  expect_end(run_on(server, {"-k", "k", "-w", "10", "min", "--", "true"}), 127,
             {err_has("a duration is one word, such as 10min)\n")});
  CHECK(only_history_left(server));
}

TEST_CASE("exit codes: a bad URL is 64 in the arguments and 78 in the environment")
{
  for (const std::string& url :
       {std::string("no://sense"), std::string("redis://"), std::string("redis://h:0"), std::string("redis://h:70000"),
        std::string("http://h"), std::string("unix://"), std::string("redis://u:geheim@h:x")}) {
    CAPTURE(url);
    const Finished typed = run_rlock({"run", "-S", url, "-k", "k", "--", "true"});
    CHECK(typed.code == 64);
    CHECK(one_line(typed.err));
    CHECK_FALSE(has(typed.err, "geheim"));
    const Finished found = run_rlock({"run", "-k", "k", "--", "true"}, {.env = {{"RLOCK_SERVER", url}}});
    CHECK(found.code == 78);
    CHECK(one_line(found.err));
    CHECK(has(found.err, "RLOCK_SERVER"));
    CHECK_FALSE(has(found.err, "geheim"));
  }
}

TEST_SUITE_END();
