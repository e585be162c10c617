// SPDX-License-Identifier: Apache-2.0
// rlock.toml: where it is found, what it sets, and what overrides it.
#include "support/integration.h"
#include "support/paths.h"

#include <regex>

using namespace rlock::test;

namespace {

namespace fs = std::filesystem;

// $RLOCK_CONFIG with this text.
class Config {
 public:
  explicit Config(const std::string& text, fs::perms perms = fs::perms::owner_read)
      : m_path(make_temp_dir("config") / "rlock.toml")
  {
    std::ofstream(m_path) << text;
    fs::permissions(m_path, perms);
    options.env["RLOCK_CONFIG"] = m_path;
  }
  [[nodiscard]] Finished rlock(std::vector<std::string> args) const { return run_rlock(std::move(args), options); }
  [[nodiscard]] std::string file() const { return m_path.string(); }
  [[nodiscard]] std::string place(int number) const { return file() + ":" + std::to_string(number); }
  [[nodiscard]] std::string line(int number) const { return place(number) + ": "; }

  ProcessOptions options;

 private:
  fs::path m_path;
};

std::string server_line(const RedisServer& server) { return "server = \"" + server.url() + "\"\n"; }

}  // namespace

SERVER_CASE("config: a server, and options for all verbs and for one")
{
  const Config config("# where we lock\n" + server_line(server) + "prefix = \"p:\"\nconflict-exit-code = 9\n\n" +
                      "[run]\nlabel = 'from the file'\nno-wait = true\nconflict-exit-code = 33\n");
  Process holder = start_rlock({"run", "-k", "k", "--", "sleep", "100"}, config.options);
  wait_until([&] { return as_int(server.command({"EXISTS", "p:k"})) == 1; }, "the lock is held");
  expect_end(config.rlock({"status", "k", "--json"}), 0, {out_has("\"from the file\"")});
  CHECK(config.rlock({"run", "-k", "k", "--", "true"}).code == 33);
  CHECK(config.rlock({"acquire", "-n", "-k", "k", "--lease", "1s"}).code == 9);
  CHECK(config.rlock({"run", "-E", "34", "-k", "k", "--", "true"}).code == 34);
  CHECK(config.rlock({"run", "--prefix", "q:", "-k", "k", "--", "true"}).code == 0);
  CHECK(has(config.rlock({"run", "-w", "10ms", "-k", "k", "--", "true"}).err, "after 10ms"));
}

TEST_CASE("config: two crontabs of which one has REDIS_URL of an application exclude each other")
{
  const RedisServer locks;
  const RedisServer cache;
  Config config("no-wait = true\n" + server_line(locks));
  Process holder = held_run(locks);
  config.options.env["REDIS_URL"] = cache.url();
  CHECK(config.rlock({"run", "-k", "k", "--", "true"}).code == 75);
  CHECK(config.rlock({"flock", "-n", "-E", "9", "k", "true"}).code == 9);
}

TEST_CASE("config: -v names the server and where it was named, without the password")
{
  const RedisServer server({.args = {}, .tcp = true, .password = "hunter2"});
  const std::string bare = server.tcp_url();
  const std::string url = "redis://:hunter2@" + bare.substr(std::string("redis://").size());
  Config config("# where we lock\n\nserver = \"" + url + "\"\n");
  const auto line_of = [&](const Words& words) {
    const Finished end = config.rlock(words);
    expect_end(end, 0, {err_lacks("hunter2")});
    const auto at = end.err.find("server redis://");
    return at == std::string::npos ? "" : end.err.substr(at, end.err.find('\n', at) - at);
  };
  const std::string named = "server " + bare;
  const Words run{"run", "-v", "-k", "k", "--", "true"};
  const std::string file = config.line(3);
  CHECK(line_of(run) == named + " (" + file.substr(0, file.size() - 2) + ")");
  CHECK(line_of({"once", "-v", "-k", "o", "--for", "1s", "--", "true"}) == line_of(run));
  CHECK(line_of({"flock", "--verbose", "k", "true"}) == line_of(run));
  CHECK(line_of({"run", "-k", "k", "--", "true"}).empty());
  CHECK(line_of({"run", "-v", "-S", url, "-k", "k", "--", "true"}) == named + " (--server)");
  config.options.env["RLOCK_SERVER"] = url;
  CHECK(line_of(run) == named + " (RLOCK_SERVER)");
  config.options.env["RLOCK_SERVER"] = std::nullopt;
  config.options.env["RLOCK_CONFIG"] = "/dev/null";
  config.options.env["REDIS_URL"] = url;
  CHECK(line_of(run) == named + " (REDIS_URL)");
  const auto json = [&](const Finished& end) { return end.err.substr(0, end.err.find('\n')); };
  const std::string first = json(config.rlock({"run", "-v", "--log-format", "json", "-k", "k", "--", "true"}));
  CHECK_MESSAGE(has(first, "\"event\":\"server\""), first);
}

TEST_CASE("config: [servers] names servers for -S @NAME, RLOCK_SERVER and the file itself")
{
  const RedisServer prod;
  const RedisServer other;
  Config config("[servers]\nprod = \"" + prod.url() + "\"\nother = [\"" + other.url() + "\"]\n");
  const auto where = [&](std::vector<std::string> options) {
    options.insert(options.begin(), "run");
    options.insert(options.end(), {"-k", "k", "--", "sh", "-c", "echo \"$RLOCK_SERVER\""});
    return config.rlock(options);
  };
  CHECK(where({"-S", "@prod"}).out == prod.url() + "\n");
  CHECK(where({"-S", "@other"}).out == other.url() + "\n");
  CHECK(has(where({"-v", "-S", "@prod"}).err, "server " + prod.url() + " (--server @prod, " + config.place(2) + ")\n"));
  config.options.env["RLOCK_SERVER"] = "@other";
  CHECK(where({}).out == other.url() + "\n");
  expect_end(where({"-S", "@porod"}), 78,
             {err_is("rlock: --server: the config file names no server @porod (did you mean '@prod'?)\n")});

  const Config in_file("server = \"@prod\"\n\n[servers]\nprod = \"" + prod.url() + "\"\n");
  CHECK(in_file.rlock({"run", "-k", "k", "--", "sh", "-c", "echo $RLOCK_SERVER"}).out == prod.url() + "\n");
}

TEST_CASE("config: rlock config says where each setting comes from, and no secret")
{
  Config config(
      "prefix = \"p:\"\nserver-timeout = \"7s\"\nwait = \"9m\"\n\n[run]\nnotify = \"mail --token abc\"\n\n[servers]\n"
      "prod = \"redis://ann:hush@db1:6380\"\n");
  const auto row = [&](std::vector<std::string> args, const std::string& name) {
    args.insert(args.begin(), "config");
    const Finished shown = config.rlock(args);
    expect_end(shown, 0, {err_is("")});
    for (const char* secret : {"hush", "abc"}) {
      CHECK_FALSE(has(shown.out, secret));
    }
    for (const std::string& line : lines_of(shown.out)) {
      if (line.starts_with(name + " ")) {
        return std::regex_replace(line, std::regex(" +"), " ");
      }
    }
    return "no " + name + " in\n" + shown.out;
  };
  CHECK(row({}, "server") == "server redis://127.0.0.1:6379 default");
  CHECK(row({}, "password") == "password - default");
  CHECK(row({}, "server-timeout") == "server-timeout 7s " + config.place(2));
  CHECK(row({"--server-timeout", "1s"}, "server-timeout") == "server-timeout 1s --server-timeout");
  CHECK(row({}, "prefix") == "prefix p: " + config.place(1));
  CHECK(row({}, "wait") == "wait 9m " + config.place(3));
  CHECK(row({}, "run.notify") == "run.notify mail --token *** " + config.place(6));
  CHECK(row({}, "servers.prod") == "servers.prod redis://***@db1:6380 " + config.place(9));
  CHECK(row({}, "quorum") == "quorum majority default");
  CHECK(has(row({}, "config-file"), " RLOCK_CONFIG"));
  CHECK(row({"-S", "@prod"}, "server") == "server redis://db1:6380 --server @prod, " + config.place(9));
  CHECK(row({"-S", "@prod"}, "user") == "user ann " + config.place(9));
  CHECK(row({"-S", "@prod"}, "password") == "password *** " + config.place(9));
  config.options.env["RLOCK_SERVER"] = "redis://two";
  config.options.env["RLOCK_PASSWORD"] = "hush";
  config.options.env["RLOCK_CACERT"] = "/ca.pem";
  CHECK(row({}, "server") == "server redis://two:6379 RLOCK_SERVER");
  CHECK(row({}, "password") == "password *** RLOCK_PASSWORD");
  CHECK(row({}, "cacert") == "cacert /ca.pem RLOCK_CACERT");
  CHECK(has(
      config.rlock({"config", "--json"}).out,
      R"({"name":"server","value":"redis://two:6379","origin":"variable","variable":"RLOCK_SERVER","file":null,"line":null})"));
  CHECK(has(
      config.rlock({"config", "--json"}).out,
      R"({"name":"prefix","value":"p:","origin":"file","variable":null,"file":")" + config.file() + R"(","line":1})"));
  config.options.env["REDIS_URL"] = "redis://three";
  CHECK(row({}, "server") == "server redis://two:6379 RLOCK_SERVER; not used: REDIS_URL");
  CHECK(row({"-S", "redis://one"}, "server") == "server redis://one:6379 --server; not used: RLOCK_SERVER, REDIS_URL");
  CHECK(config.rlock({"config", "-S", "redis://h:x"}).code == 64);
  CHECK(config.rlock({"config", "-S", "@none"}).code == 78);
  CHECK(config.rlock({"config", "server"}).code == 64);
}

TEST_CASE("config: rlock config names the places of servers that are not used")
{
  Config config("server = \"redis://file\"\n");
  const auto from = [&](std::vector<std::string> args) {
    args.insert(args.begin(), "config");
    return config.rlock(args).out;
  };
  CHECK_FALSE(has(from({}), "not used"));
  config.options.env["REDIS_URL"] = "redis://application";
  CHECK(has(from({}), config.place(1) + "; not used: REDIS_URL\n"));
  CHECK(has(from({"-S", "redis://typed"}), "--server; not used: " + config.place(1) + ", REDIS_URL\n"));
}

SERVER_CASE("config: completion knows the names of servers, and the server of the file")
{
  const Config config(server_line(server) + "[servers]\nprod = \"redis://:hush@db1\"\nproof = \"redis://db2\"\n");
  const auto next = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {"completion", "--next", "--"});
    return config.rlock(words).out;
  };
  CHECK(next({"run", "-S", "@"}) == "words\n@prod\tredis://***@db1\n@proof\tredis://db2\n");
  CHECK(next({"run", "--server=@pro"}) == "words\n--server=@prod\tredis://***@db1\n--server=@proof\tredis://db2\n");
  for (const std::string begin :
       {"postgresql", "postgres", "mysql", "mariadb", "mongodb", "mongodb+srv", "etcd", "etcds", "zookeeper",
        "zookeeper+tls", "s3", "redis", "rediss", "redis+sentinel", "rediss+cluster"}) {
    CHECK(has(next({"run", "-S", begin}), "\n" + begin + "://\t"));
  }
  CHECK(next({"config", "-S", "@proo"}) == "words\n@proof\tredis://db2\n");
  const Process holder = start_rlock({"run", "-k", "stock", "--", "sleep", "100"}, config.options);
  wait_until([&] { return as_int(server.command({"EXISTS", "stock"})) == 1; }, "the lock is held");
  CHECK(next({"status", "sto"}) == "words\nstock\t\n");
}

TEST_CASE("config: -v warns of a server that may evict locks, and of no other")
{
  const auto warning = [](const std::vector<std::string>& args) {
    const RedisServer server({.args = args});
    const Finished quiet = run_rlock({"run", "-S", server.url(), "-k", "k", "--", "true"});
    CHECK(quiet.err.empty());
    const Finished run = run_rlock({"run", "-v", "-S", server.url(), "-k", "k", "--", "true"});
    CHECK(run.code == 0);
    return has(run.err, server.url() +
                            " may forget locks: allkeys-lru: locks are among the first keys that it evicts "
                            "(set maxmemory-policy noeviction");
  };
  CHECK(warning({"--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru"}));
  CHECK_FALSE(warning({"--maxmemory", "100mb", "--maxmemory-policy", "noeviction"}));
  CHECK_FALSE(warning({"--maxmemory-policy", "allkeys-lru"}));  // without a limit it evicts nothing
  CHECK(run_rlock({"run", "-v", "-S", "redis://127.0.0.1:1", "-k", "k", "--", "true"}).code == 69);
}

TEST_CASE("config: a server that was named gets no advice to start a private one")
{
  ProcessOptions nothing;
  nothing.env["RLOCK_CONFIG"] = "/dev/null";
  nothing.env["RLOCK_SERVER"] = std::nullopt;
  nothing.env["REDIS_URL"] = std::nullopt;
  const auto err = [&](const std::vector<std::string>& args) { return run_rlock(args, nothing).err; };
  CHECK(has(err({"run", "-S", "redis://127.0.0.1:1", "-k", "k", "--", "true"}), "-S names another server)"));
  CHECK(has(err({"status", "-S", "redis://127.0.0.1:1", "k"}), "-S names another server)"));
  nothing.env["RLOCK_SERVER"] = "redis://127.0.0.1:1";
  CHECK(has(err({"run", "-k", "k", "--", "true"}), "-S names another server)"));
}

SERVER_CASE("config: one file is read, the first of $RLOCK_CONFIG, $XDG_CONFIG_HOME, ~/.config")
{
  const fs::path home = make_temp_dir("home");
  const fs::path other = make_temp_dir("home");
  fs::create_directories(home / ".config");
  std::ofstream(home / ".config/rlock.toml") << server_line(server) << "conflict-exit-code = 1\nno-wait = true\n";
  std::ofstream(other / "rlock.toml") << server_line(server) << "conflict-exit-code = 2\nno-wait = true\n";
  Config named(server_line(server) + "conflict-exit-code = 3\nno-wait = true\n");
  Process holder = held_run(server);
  const auto code = [](const ProcessOptions& options) { return run_rlock({"run", "-k", "k", "true"}, options).code; };

  ProcessOptions options;
  options.env["HOME"] = home;
  options.env["XDG_CONFIG_HOME"] = std::nullopt;
  CHECK(code(options) == 1);
  options.env["XDG_CONFIG_HOME"] = other;
  CHECK(code(options) == 2);
  options.env["RLOCK_CONFIG"] = named.options.env["RLOCK_CONFIG"];
  CHECK(code(options) == 3);
  options.env["RLOCK_CONFIG"] = "/dev/null";  // none
  options.env["RLOCK_SERVER"] = server.url();
  options.env["REDIS_URL"] = std::nullopt;
  CHECK(run_rlock({"run", "-n", "-k", "k", "true"}, options).code == 75);
}

SERVER_CASE("config: what was typed silences what would contradict it")
{
  const Config config(server_line(server) + "wait = \"1h\"\nttl = \"60s\"\npermits = 3\nquiet = true\n");
  Process holder = held_run(server);
  CHECK(config.rlock({"run", "-n", "-k", "k", "true"}).code == 78);  // the file's permits on a plain lock
  CHECK(config.rlock({"run", "-n", "-x", "-k", "free", "true"}).code == 0);
  CHECK(config.rlock({"run", "-n", "--lease", "5s", "-k", "other", "true"}).code == 0);
  CHECK(has(config.rlock({"run", "-v", "-k", "third", "true"}).err, "running true"));
  CHECK(config.rlock({"acquire", "--lease", "5s", "-k", "fourth"}).code == 0);
}

SERVER_CASE("config: the options of concurrency groups give way to what excludes them")
{
  const Config config(server_line(server) + "latest = true\ncancel-in-progress = true\n");
  Process holder = held_run(server);
  CHECK(config.rlock({"run", "-n", "-k", "k", "true"}).code == 75);
  CHECK(config.rlock({"run", "--shards", "2", "-k", "s", "true"}).code == 0);
  CHECK(config.rlock({"run", "--permits", "2", "-k", "p", "true"}).code == 0);
  CHECK(config.rlock({"once", "--for", "1h", "-k", "o", "true"}).code == 0);
}

TEST_CASE("config: an invalid entry is 78, with the file and the line")
{
  struct Row {
    std::string text;
    int line;
    std::string why;
  };
  const Row rows[] = {
      {"wait = 10s", 1, "this is no valid TOML; text stands in quotes (try wait = \"10s\")"},
      {"\nprefx = 1", 2, "unknown option 'prefx' (did you mean 'prefix'?)"},
      {"[rnu]\nwait = 1", 1, "[rnu] is no verb"},
      {"[run]\npid = 1", 2, "unknown option 'pid'"},
      {"help = true", 1, "unknown option 'help'"},
      {"[flock]\n\nkill-after = \"1s\"", 3, "unknown option 'kill-after'"},
      {"wait = \"1s\"\n[watch]\nutc = 1", 3, "utc is true or false"},
      {"wait = \"1s\"\n\nno-wait = true", 3, "no-wait and wait exclude each other (leave one of them out)"},
      {"[run]\nno-wait = true\nwait = \"1s\"", 3, "wait and no-wait exclude each other (leave one of them out)"},
      {"[once]\nfor = \"1h\"\nper = \"day\"", 3, "per and for exclude each other (leave one of them out)"},
      {"[flock]\nwait = 1\ntimeout = 2", 3, "timeout and wait are one option (leave one of them out)"},
      {"wait = true", 1, "wait takes a value, DUR"},
      {"no-wait = 1", 1, "no-wait is true or false"},
      {"wait = [1, 2]", 1, "wait takes one value, not several"},
      {"server = []", 1, "server: the array is empty"},
      {"server = \"redis:/db\"", 1, "server: "},
      {"server = \"local:\"\nlease = \"fast\"", 2, "--lease: 'fast' is not a duration"},
      {"server = \"local:\"\nleftovers = \"eat\"", 2, "--leftovers: 'eat' is none of stop, wait, leave"},
      {"server = \"local:\"\nconflict-exit-code = 300", 2, "--conflict-exit-code: '300' is not a number"},
      {"server = [\"redis://a\", \"redis://b\"]\nquorum = \"some\"", 2, "--quorum: 'some' is none of"},
      {"[servers]\n\"a b\" = \"redis://h\"\n", 2, "the name of a server has letters"},
      {"[servers]\nprod = true\n", 2, "prod takes a URL, or several in brackets"},
      {"[servers]\nprod = []\n", 2, "prod takes a URL, or several in brackets"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.text);
    const Config config(row.text);
    expect_end(config.rlock({"run", "-k", "k", "--", "echo", "no"}), 78,
               {out_is(""), err_begins("rlock: " + config.line(row.line) + row.why)});
  }
}

TEST_CASE("config: rlock config refuses entries that contradict each other for any verb")
{
  const Config config("wait = \"1s\"\nno-wait = true\n");
  expect_end(config.rlock({"config"}), 78,
             {err_is("rlock: " + config.line(2) + "no-wait and wait exclude each other (leave one of them out)\n")});
}

SERVER_CASE("config: an entry of a table silences those above all tables that contradict it")
{
  const Config config(server_line(server) + "wait = \"1h\"\nlatest = true\n[run]\nno-wait = true\n");
  const Process holder = held_run(server);
  CHECK(config.rlock({"run", "-k", "k", "--", "true"}).code == 75);
}

TEST_CASE("config: what is typed wrong is still a matter of the arguments, and help needs no file")
{
  const Config config("server = \"local:\"\nlease = \"5s\"\n");
  CHECK(config.rlock({"run", "--lease", "fast", "-k", "k", "true"}).code == 64);
  const Config broken("wait");
  CHECK(broken.rlock({"run", "--help"}).code == 0);
  CHECK(broken.rlock({"help"}).code == 0);
  CHECK(broken.rlock({"version"}).code == 0);
  ProcessOptions missing;
  missing.env["RLOCK_CONFIG"] = "/nowhere/rlock.toml";
  expect_end(run_rlock({"status", "k"}, missing), 78,
             {err_is("rlock: RLOCK_CONFIG: there is no file /nowhere/rlock.toml\n")});
}

SERVER_CASE("config: options of other verbs are no mistake above all tables")
{
  const Config config(server_line(server) + "lease = \"5s\"\nshards = 3\nleftovers = \"wait\"\nclose = true\n");
  CHECK(config.rlock({"status", "k"}).code == 1);
  CHECK(config.rlock({"flock", "k", "true"}).code == 0);
}

TEST_CASE("config: a password file that all users may read is refused, and a private one reaches the job's own rlock")
{
  const RedisServer server({.args = {}, .tcp = true, .password = "secret"});
  const std::string url = "redis://:secret@" + server.tcp_url().substr(std::string("redis://").size());
  const std::string text = "\nserver = \"" + url + "\"\n";
  for (const std::string& each : {text, "[servers]\nprod = \"" + url + "\"\n"}) {
    const Config open(each, fs::perms::owner_read | fs::perms::others_read);
    expect_end(open.rlock({"run", "-S", "redis://127.0.0.1:1", "-k", "k", "--", "true"}), 78,
               {err_begins("rlock: " + open.line(2) + "every user may read this password (try chmod o-r "),
                err_lacks("secret")});
  }

  Config closed(text, fs::perms::owner_read | fs::perms::group_read);
  closed.options.env["RLOCK"] = RLOCK_BINARY;
  expect_end(closed.rlock({"run", "-k", "k", "--", "sh", "-c", "echo \"$RLOCK_SERVER\"; \"$RLOCK\" check"}), 0,
             {out_is(server.tcp_url() + "\n")});
}

TEST_CASE("config: a password file")
{
  const RedisServer server({.args = {}, .tcp = true, .password = "secret"});
  const fs::path file = make_temp_dir("password") / "password";
  std::ofstream(file) << "secret\n";
  Config config("server = \"" + server.tcp_url() + "\"\npassword-file = \"" + file.string() + "\"\n");
  CHECK(config.rlock({"run", "-k", "k", "--", "true"}).code == 0);
  config.options.env["RLOCK_PASSWORD"] = "wrong";
  CHECK(config.rlock({"run", "-k", "k", "--", "true"}).code == 77);
}
