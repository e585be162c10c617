// SPDX-License-Identifier: Apache-2.0
// A password is visible only to processes that were given it, and may change while a job runs.
#include "support/integration.h"
#include "support/job_runner.h"
#include "support/paths.h"

#include <sys/stat.h>

using namespace rlock::test;

namespace {

const std::string secret = test_password;

bool tells(const std::string& text) { return has(text, secret); }

std::string of_process(pid_t pid, const char* what) { return text_of("/proc/" + std::to_string(pid) + "/" + what); }

// Every process that was started with this in its environment: rlock, its guardian or keeper, and the job.
std::vector<pid_t> marked(const std::string& mark)
{
  std::vector<pid_t> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    const bool is_process = name.find_first_not_of("0123456789") == std::string::npos;
    if (is_process && has(of_process(std::stoi(name), "environ"), mark)) {
      found.push_back(std::stoi(name));
    }
  }
  return found;
}

}  // namespace

TEST_CASE("secrets: whichever way it comes, no process and no line shows more than was there before")
{
  const RedisServer server({.password = secret});
  const std::filesystem::path dir = make_temp_dir("secrets");
  std::ofstream(dir / "password") << secret << "\n";
  const std::string with = "unix://:" + std::string(secret) + "@" + server.socket_path().string();
  struct Row {
    const char* why;
    std::vector<std::string> options;
    ProcessOptions environment;
    bool inherited;                       // the user put it into the environment, which the job inherits
    bool in_own_environment = inherited;  // then it is in rlock's own environment, too
  };
  const Row rows[] = {
      {"in the arguments", {"-S", with}, {}, false},
      {"joined to its option", {"--server=" + with}, {}, false},
      {"in a file", {"-S", server.url(), "--password-file", (dir / "password").string()}, {}, false},
      {"in RLOCK_SERVER, which we set anew", {}, {.env = {{"RLOCK_SERVER", with}}}, false, true},
      {"in REDIS_URL", {}, {.env = {{"REDIS_URL", with}}}, true},
      {"in RLOCK_PASSWORD", {"-S", server.url()}, {.env = {{"RLOCK_PASSWORD", secret}}}, true},
      {"in REDISCLI_AUTH", {"-S", server.url()}, {.env = {{"REDISCLI_AUTH", secret}}}, true},
  };
  for (const Row& row : rows) {
    CAPTURE(row.why);
    std::filesystem::remove(dir / "job");
    const Words shell{"sh", "-c", "echo $$ > " + (dir / "job").string() + "; exec sleep 60"};
    const Words words = joined({"run", "-v", "-k", "k"}, with_job(row.options, shell));
    ProcessOptions environment = row.environment;
    environment.env["MARK"] = dir.string();
    Process rlock = start_rlock(words, environment);
    const pid_t job = pid_from(dir / "job");
    REQUIRE(job > 0);
    CHECK(tells(of_process(job, "environ")) == row.inherited);
    const std::vector<pid_t> family = marked("MARK=" + dir.string());
    CHECK(family.size() >= 3);  // the guardian is one of them
    for (const pid_t pid : family) {
      CHECK_FALSE(tells(of_process(pid, "cmdline")));
      CHECK((row.in_own_environment || !tells(of_process(pid, "environ"))));
    }
    const auto options = ProcessOptions{.env = {{"RLOCK_PASSWORD", secret}}};
    CHECK_FALSE(tells(run_rlock({"status", "--json", "-S", server.url(), "-k", "k"}, options).out));
    for (const std::string& key : as_texts(server.command({"KEYS", "*"}))) {
      CHECK_FALSE(tells(show(server.command({"DUMP", key}))));
    }
    rlock.signal(SIGTERM);
    rlock.wait();
    CHECK_FALSE(tells(rlock.out() + rlock.err()));
  }
}

TEST_CASE("secrets: the rlocks of a job and of a script know the file of the password and the user, not the password")
{
  const RedisServer server({.password = "other"});
  REQUIRE(show(server.command({"ACL", "SETUSER", "shop", "on", ">" + secret, "~*", "&*", "+@all"})) == "\"OK\"");
  const std::filesystem::path dir = make_temp_dir("secrets");
  std::ofstream(dir / "password") << secret << "\n";
  std::ofstream(dir / "rlock.toml") << "[run]\npassword-file = \"password\"\n";
  const std::string url = "unix://shop@" + server.socket_path().string();
  const std::string inside =
      "cd / && rlock check && rlock run -k inner -- rlock check && rlock status outer >&2 && "
      "echo \"$RLOCK_SERVER $RLOCK_PASSWORD_FILE $RLOCK_PASSWORD\"";
  const std::string expected = url + " " + (dir / "password").string() + " \n";
  struct Row {
    const char* why;
    std::string script;
    std::map<std::string, std::optional<std::string>> environment = {};
  };
  const Row rows[] = {
      {"a job", "rlock run -S " + url + " --password-file password -k outer -- sh -c '" + inside + "'"},
      {"a job whose rlock found another password",
       "rlock run -S " + url + " --password-file password -k outer -- sh -c '" + inside + "'",
       {{"RLOCK_PASSWORD", "wrong"}, {"REDISCLI_AUTH", "wrong"}}},
      {"a job by RLOCK_PASSWORD_FILE",
       "rlock run -k outer -- sh -c '" + inside + "'",
       {{"RLOCK_SERVER", url}, {"RLOCK_PASSWORD_FILE", "password"}}},
      {"a job by the table of the verb",
       "rlock run -S " + url + " -k outer -- sh -c '" + inside + "'",
       {{"RLOCK_CONFIG", (dir / "rlock.toml").string()}}},
      {"a script",
       "lock=$(rlock acquire outer --lease 10s --export -S " + url +
           " --password-file password) || exit; eval \"$lock\"; " + inside + " && rlock release",
       {{"RLOCK_PASSWORD", "wrong"}}},
      {"flock", "rlock flock -S " + url + " --password-file password outer sh -c 'rlock check; " + inside + "'"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.why);
    ProcessOptions options{.env = row.environment};
    options.env["PATH"] = std::filesystem::path(RLOCK_BINARY).parent_path().string() + ":/usr/bin:/bin";
    Process script({"sh", "-c", "cd " + dir.string() + " && " + row.script}, options);
    const Exit end = script.wait();
    CHECK_MESSAGE(end == Exit{0}, script.err());
    CHECK(script.out() == expected);
    CHECK_FALSE(tells(script.err()));
  }
}

TEST_CASE("secrets: a pipe with the password, which can be read once only, is no file for the job")
{
  const RedisServer server({.password = secret});
  const std::filesystem::path pipe = make_temp_dir("secrets") / "pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  Process writer({"sh", "-c", "echo " + secret + " > " + pipe.string()});
  const Finished end = rlock_on(
      server, {"run", "--password-file", pipe.string(), "-k", "k", "--", "sh", "-c", "echo \"[$RLOCK_PASSWORD_FILE]\""},
      {.env = {{"RLOCK_PASSWORD_FILE", "/of/another/server"}}});
  expect_end(end, 0, {out_is("[]\n")});
}

TEST_CASE("secrets: the keeper of an acquired lock shows none, nor what a script gets of it")
{
  const RedisServer server({.password = secret});
  const std::string with = "unix://:" + secret + "@" + server.socket_path().string();
  const std::filesystem::path dir = make_temp_dir("secrets");
  Process watched({"sleep", "60"});
  (void)succeeded(run_rlock({"acquire", "-S", with, "-k", "k", "--export", "--pid", std::to_string(watched.pid())},
                            {.env = {{"MARK", dir.string()}}}));
  const std::vector<pid_t> keepers = marked("MARK=" + dir.string());
  CHECK(keepers.size() == 1);
  for (const pid_t keeper : keepers) {
    CHECK_FALSE(tells(of_process(keeper, "cmdline") + of_process(keeper, "environ")));
  }
  watched.signal(SIGKILL);
  watched.wait();
  wait_until([&] { return as_int(server.command({"EXISTS", "k"})) == 0; }, "the keeper has let go");
}

// Process checks every output of rlock for the password; these are the ways to fail.
TEST_CASE("secrets: no error shows it, whatever is wrong")
{
  const RedisServer server({.tcp = true, .password = "other"});
  const std::string port = std::to_string(server.port());
  const std::string login = "shop:" + secret + "@";
  struct Row {
    std::string url;
    int code;
  };
  const Row rows[] = {
      {"unix://" + login + server.socket_path().string(), 77},
      {"redis://" + login + "127.0.0.1:" + port, 77},
      {"redis://" + login + "127.0.0.1:" + port + "/3", 77},
      {"redis://" + login + "127.0.0.1:1", 69},
      {"rediss://" + login + "127.0.0.1:" + port, 69},
      {"redis://" + login + "no-such-host.invalid", 69},
      {"unix://" + login + "/nonexistent/socket", 69},
      {"redis://" + login + "127.0.0.1:99999", 64},
      {"redis://" + login + "127.0.0.1:" + port + "/x", 64},
      {"redis://" + login, 64},
      {"http://" + login + "127.0.0.1", 64},
      {"postgresql://shop:ge/" + secret + "@127.0.0.1:1/app", 64},
      {"postgresql://shop:12/" + secret + "@127.0.0.1:1/app", 64},
      {"mysql://shop:ge/" + secret + "@127.0.0.1:1/app", 64},
      {"mongodb://shop:ge/" + secret + "@127.0.0.1:1/app", 64},
      {"etcd://shop:ge?" + secret + "@127.0.0.1:1", 64},
      {"zookeeper://shop:ge/" + secret + "@127.0.0.1:1", 64},
      {"host=127.0.0.1 port=1 user=shop password=" + secret + " dbname=app", 64},
  };
  const std::vector<std::vector<std::string>> verbs{
      {"run", "-v", "-k", "k", "--", "true"}, {"acquire", "-k", "k", "--lease", "1m", "--json"},
      {"status", "-k", "k", "--json"},        {"list", "--json"},
      {"force-unlock", "-k", "k", "--yes"},   {"release", "-k", "k", "--token", "t"}};
  for (const Row& row : rows) {
    for (std::vector<std::string> words : verbs) {
      CAPTURE(row.url);
      CAPTURE(words.front());
      words.insert(words.begin() + 1, {"-S", row.url, "--server-timeout", "1s"});
      const Finished end = run_rlock(words);
      CHECK_MESSAGE(end.code == row.code, end.err);
      CHECK_FALSE(end.err.empty());
    }
    const auto told = make_temp_dir("secrets") / "told";
    run_rlock({"run", "-v", "--log-format", "json", "-k", "k", "-S", row.url, "--server-timeout", "1s", "--notify",
               "env > " + told.string(), "--", "true"});
    CHECK_FALSE((std::filesystem::exists(told) && tells(text_of(told))));
    const Finished inherited = run_rlock({"run", "-k", "k", "--", "true"}, {.env = {{"RLOCK_SERVER", row.url}}});
    CHECK(inherited.code == (row.code == 64 ? 78 : row.code));
  }
}

TEST_CASE("secrets: no error shows one that is written wrongly, wherever it is written")
{
  const std::filesystem::path config = make_temp_dir("secrets") / "rlock.toml";
  const auto from_file = [&](const std::string& text) {
    std::ofstream(config) << text << "\n";
    return run_rlock({"run", "-k", "k", "--", "true"}, {.env = {{"RLOCK_CONFIG", config.string()}}});
  };
  for (const std::string& text :
       {"server = redis://u:" + secret + "@h", "server = [redis://u:" + secret + "@h]",
        "\"redis://u:" + secret + "@h\" = 1", "[\"redis://u:" + secret + "@h\"]\nwait = 1",
        "server = \"redis+sentinel://h/m?sentinel_pasword=" + secret + "\"", "server = \"redis://u:" + secret + "\""}) {
    CAPTURE(text);
    const Finished end = from_file(text);
    CHECK_MESSAGE(end.code == 78, end.err);
    CHECK_MESSAGE(!tells(end.err), end.err);
  }
  for (const std::string& text : {"postgresql://u:ge/" + secret + "@h/app", "host=h password=" + secret + " dbname=app",
                                  "redis+sentinel://h/m?sentinel_password=" + secret}) {
    CAPTURE(text);
    std::filesystem::permissions(config, std::filesystem::perms(0644));
    const Finished end = from_file("server = \"" + text + "\"");
    expect_end(end, 78, {err_has("every user may read this password")});
    CHECK_MESSAGE(!tells(end.err), end.err);
  }
  for (const char* variable : {"RLOCK_SERVER", "REDIS_URL"}) {
    for (const std::string& url : {"redis://u:" + secret + " x@127.0.0.1:1", "redis://u:x " + secret + "@127.0.0.1:1",
                                   "redis://:" + secret + " x y@127.0.0.1:1", "redis://u:" + secret,
                                   "redis+sentinel://h/m?sentinel_pasword=" + secret,
                                   "redis+sentinel://u:x@h/m?tls=yes&sentinel_pass=x@" + secret}) {
      CAPTURE(variable);
      CAPTURE(url);
      const Finished end = run_rlock({"run", "-k", "k", "--", "true"}, {.env = {{variable, url}}});
      CHECK_MESSAGE(end.code == 78, end.err);
      CHECK_MESSAGE(!tells(end.err), end.err);
    }
  }
  const Finished cut = run_rlock({"run", "-k", "k", "--", "true"}, {.env = {{"RLOCK_SERVER", "redis://u:x y@h"}}});
  CHECK_MESSAGE(has(cut.err, "write a blank in a user or password as %20"), cut.err);
  for (const Words& words : std::vector<Words>{{"run", "--sever=redis://u:" + secret + "@h", "-k", "k", "--", "true"},
                                               {"run", "-Xredis://u:" + secret + "@h", "-k", "k", "--", "true"},
                                               {"redis://u:" + secret + "@h"},
                                               {"list", "*", "redis://u:" + secret + "@h"},
                                               {"run", "-w", "redis://u:" + secret + "@h", "-k", "k", "--", "true"}}) {
    const Finished end = run_rlock(words);
    CHECK_MESSAGE(end.code == 64, end.err);
    CHECK_MESSAGE(!tells(end.err), end.err);
  }
}

SERVER_CASE("secrets: a password that is rotated while a job runs is read again, and the lock is kept")
{
  const std::filesystem::path dir = make_temp_dir("rotation");
  const auto write = [&](const std::string& password) { std::ofstream(dir / "password") << password << "\n"; };
  write("old");
  REQUIRE(show(server.command({"ACL", "SETUSER", "shop", "on", ">old", "~*", "&*", "+@all"})) == "\"OK\"");
  Process rlock = start_rlock({"run", "-v", "-S", "unix://shop@" + server.socket_path().string(), "--password-file",
                               (dir / "password").string(), "-k", "k", "--ttl", "2s", "--", "sh", "-c",
                               "until test -e " + (dir / "go").string() + "; do sleep 0.01; done"});
  wait_until([&] { return listening(server) == 1; }, "it holds the lock, and listens");
  REQUIRE(show(server.command({"ACL", "SETUSER", "shop", "<old", ">new"})) == "\"OK\"");
  write("new");
  // With its connection a subscription ends, so one that is seen later is a new one. rlock listens again at once.
  CHECK(as_int(server.command({"CLIENT", "KILL", "USER", "shop"})) >= 1);
  wait_until([&] { return listening(server) == 1; }, "it has come back");
  const Instant since = BootClock().now();
  wait_until([&] { return BootClock().now() - since > 4s; }, "two leases have passed");
  std::ofstream(dir / "go").close();
  CHECK_MESSAGE(rlock.wait() == Exit{0}, rlock.err());
  CHECK_FALSE(is_held(server));
}

TEST_CASE("secrets: a password file that every user may read is told in one line, also with -q")
{
  const RedisServer server({.password = secret});
  const std::filesystem::path file = make_temp_dir("public") / "password";
  std::ofstream(file) << secret << "\n";
  const Words words{"run", "-q", "-S", server.url(), "--password-file", file.string(), "-k", "k", "--", "true"};
  using std::filesystem::perms;
  std::filesystem::permissions(file, perms::owner_read | perms::others_read);
  const Finished told = run_rlock(words);
  CHECK(told.code == 0);
  CHECK(told.err ==
        "rlock: warning: --password-file: every user may read the password in " + file.string() + " (try chmod o-r)\n");
  std::filesystem::permissions(file, perms::owner_read | perms::group_read);
  expect_end(run_rlock(words), 0, {err_is("")});
}

TEST_CASE("secrets: a job that is refused for want of the outer rlock's password is told how to get it")
{
  const RedisServer server({.password = secret});
  const std::string with = "unix://:" + std::string(secret) + "@" + server.socket_path().string();
  for (const Words& job : std::vector<Words>{{"check"},
                                             {"run", "-k", "other", "-n", "--", "true"},
                                             {"flock", "--verbose", "other", "true"},
                                             {"once", "-k", "other", "--for", "1h", "--", "true"},
                                             {"acquire", "-k", "other", "--lease", "5s"}}) {
    CAPTURE(job.front());
    expect_end(run_rlock(joined({"run", "-S", with, "-k", "k", "--", RLOCK_BINARY}, job)), 77,
               {err_has("with --password-file FILE on the outer rlock the job gets that file")});
  }
  const Finished outside = run_rlock({"check", "-S", server.url(), "-k", "k", "--token", "x:1"});
  CHECK_MESSAGE(!has(outside.err, "outer rlock"), outside.err);
}
