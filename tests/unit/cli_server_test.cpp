// SPDX-License-Identifier: Apache-2.0
#include "cli/options/server.h"

#include "cli/options/lock.h"

#include <doctest/doctest.h>

#include <cstdlib>

#include <unistd.h>

using namespace rlock;
using namespace rlock::cli;

namespace {

using Variables = std::vector<std::string>;

ServerSpec meant(const RawServer& typed, const Variables& variables)
{
  return *resolve_server(typed, Environment(variables));
}

Error error_of(const RawServer& typed, const Variables& variables)
{
  return resolve_server(typed, Environment(variables)).error();
}

RawServer with_url(const std::string& url) { return {.urls = {url}}; }

class TempFile {
 public:
  explicit TempFile(const std::string& content)
  {
    const int fd = ::mkstemp(m_path.data());
    REQUIRE(fd >= 0);
    REQUIRE(::write(fd, content.data(), content.size()) == static_cast<ssize_t>(content.size()));
    ::close(fd);
  }
  ~TempFile() { ::unlink(m_path.c_str()); }
  TempFile(const TempFile&) = delete;
  TempFile& operator=(const TempFile&) = delete;
  [[nodiscard]] const std::string& path() const { return m_path; }

 private:
  std::string m_path = "/tmp/rlock_cli_test.XXXXXX";
};

}  // namespace

TEST_CASE("server: first found wins, and an empty variable is not found")
{
  const Variables both{"RLOCK_SERVER=redis://one:1", "REDIS_URL=redis://two:2"};
  CHECK(meant(with_url("redis://arg:3"), both).endpoints.front().host == "arg");
  CHECK(meant({}, both).endpoints.front().host == "one");
  CHECK(meant({}, {"RLOCK_SERVER=", "REDIS_URL=redis://two:2"}).endpoints.front().host == "two");
  Environment configured({"REDIS_URL=redis://two:2"});
  configured.configure({{.option = "--server", .values = {"redis://file:4"}, .where = "/etc/rlock.toml:3"}});
  const Result<ServerSpec> of_file = resolve_server({}, configured);
  REQUIRE(of_file);
  CHECK(of_file->endpoints.front().host == "file");
  CHECK(of_file->named_by == "/etc/rlock.toml:3");
  CHECK(meant({}, {}).named_by == "default");
  CHECK(meant({}, both).named_by == "RLOCK_SERVER");
  CHECK(meant({}, {"XRLOCK_SERVER=redis://no:1"}).endpoints.front().shown() == "redis://127.0.0.1:6379");
  CHECK(meant(with_url("local:"), {}).endpoints.front().kind == Endpoint::Kind::local);
}

TEST_CASE("server: @NAME is what [servers] in the config file says, wherever a URL may stand")
{
  const auto spec = [](const std::vector<std::string>& typed, const Variables& variables,
                       std::vector<Setting> more = {}) {
    Environment environment(variables);
    more.push_back({.option = "@prod", .values = {"redis://:hush@prod:1"}, .where = "/etc/rlock.toml:9"});
    more.push_back(
        {.option = "@three", .values = {"redis://a", "redis://b", "redis://c"}, .where = "/etc/rlock.toml:10"});
    environment.configure(more);
    RawServer raw;
    raw.urls = typed;
    return resolve_server(raw, environment);
  };
  const Result<ServerSpec> prod = spec({"@prod"}, {"RLOCK_SERVER=redis://other"});
  REQUIRE(prod);
  CHECK(prod->shown() == "redis://prod:1");
  CHECK(prod->endpoints.front().password == "hush");
  CHECK(prod->named_by == "--server @prod, /etc/rlock.toml:9");
  CHECK(spec({}, {"RLOCK_SERVER=@prod"})->shown() == "redis://prod:1");
  CHECK(spec({}, {}, {{.option = "--server", .values = {"@three"}, .where = "/etc/rlock.toml:2"}})->endpoints.size() ==
        3);
  CHECK(spec({"@three", "redis://d:1", "redis://e:1"}, {})->endpoints.size() == 5);

  // A job gets the URL without the password, which its own rlock finds again by the file.
  CHECK(spec({}, {"RLOCK_SERVER=redis://prod:1"})->endpoints.front().password == "hush");

  const Error unknown = spec({"@prdo"}, {}).error();
  CHECK(unknown.code == ErrorCode::config);
  CHECK(unknown.text == "--server: the config file names no server @prdo (did you mean '@prod'?)");
  CHECK(spec({}, {"RLOCK_SERVER=@nothing-like-it"}).error().text ==
        "RLOCK_SERVER: the config file names no server @nothing-like-it (rlock config lists them)");
  CHECK(error_of(with_url("@prod"), {}).text ==
        "--server: the config file names no server @prod (write [servers] and prod = \"redis://host\" in rlock.toml)");
  const Error wrong = spec({"@bad"}, {}, {{.option = "@bad", .values = {"redis://h:x"}, .where = "/f:4"}}).error();
  CHECK(wrong.code == ErrorCode::config);
  CHECK(wrong.text.starts_with("/f:4: @bad: "));
}

TEST_CASE("server: a bad URL is 64 in the arguments, 78 in the environment, and named")
{
  const Error typed = error_of(with_url("http://h"), {});
  CHECK(typed.code == ErrorCode::usage);
  CHECK(typed.text.starts_with("--server: "));

  const Error inherited = error_of({}, {"REDIS_URL=redis://:hunter2@"});
  CHECK(inherited.code == ErrorCode::config);
  CHECK(inherited.text.starts_with("REDIS_URL: "));
  CHECK(inherited.text.find("hunter2") == std::string::npos);
}

TEST_CASE("server: several are a quorum, with a timeout of its own")
{
  const RawServer typed{.urls = {"redis://a", "redis://b:1", "unix:///c"}};
  const ServerSpec three = meant(typed, {});
  CHECK(three.shown() == "redis://a:6379 redis://b:1 unix:///c");
  CHECK(three.timeout == Millis{500});
  CHECK(three.quorum == QuorumRule::majority);
  CHECK(three.restart_guard);
  CHECK(meant(with_url("redis://a"), {}).timeout == Millis{5000});
  CHECK(meant({}, {"RLOCK_SERVER=" + three.shown()}).shown() == three.shown());

  RawServer all = typed;
  all.quorum = QuorumRule::all;
  all.no_restart_guard = true;
  all.timeout = Millis{2000};
  CHECK(meant(all, {}).quorum == QuorumRule::all);
  CHECK_FALSE(meant(all, {}).restart_guard);
  CHECK(meant(all, {}).timeout == Millis{2000});
  CHECK(meant(typed, {"RLOCK_PASSWORD=p"}).endpoints[2].password == "p");
}

TEST_CASE("server: what cannot be a quorum is said")
{
  CHECK(error_of({.urls = {"redis://a/1", "redis://a:6379/2"}}, {}).text ==
        "--server: redis://a:6379/1 and redis://a:6379/2 are the same server, which cannot vote twice");
  CHECK(error_of({.urls = {"redis://a", "local:"}}, {}).text ==
        "--server: local: is one server for one host and no part of a quorum (give redis:// or unix:// URLs)");
  CHECK(error_of({.urls = {"redis://a"}, .quorum = QuorumRule::all}, {}).text ==
        "--quorum is for several servers (try -S redis://a -S redis://b -S redis://c)");
  OptionTable known;
  RawServer typed;
  add_server_options(known, typed);
  CHECK(known.apply(std::array{Given{.option = known.find("--quorum"), .value = "most"}}).error().text ==
        "--quorum: 'most' is none of majority, all");
  CHECK(error_of({}, {"RLOCK_SERVER=redis://a redis://a"}).code == ErrorCode::config);
}

TEST_CASE("server: what a database cannot have is refused before a request")
{
  for (const auto& urls : {std::vector<std::string>{"redis://a", "postgresql://b/app"},
                           std::vector<std::string>{"postgres://a/app", "redis://b", "redis://c"}}) {
    const Error refused = error_of({.urls = urls}, {});
    CHECK(refused.code == ErrorCode::usage);
    CHECK(refused.text ==
          "--server: a PostgreSQL database is no part of a quorum (give it alone; its hosts stand in one "
          "URL, postgresql://a,b/database)");
  }
  CHECK(error_of({.urls = {"redis://a", "mariadb://b/app"}}, {}).text ==
        "--server: a MySQL database is no part of a quorum (give it alone; its hosts stand in one URL, "
        "mysql://a,b/database)");
  CHECK(error_of({.urls = {"mysql://a/app"}, .cacert = "ca.pem"}, {}).text ==
        "--cacert: the URL of a MySQL server names the files for TLS (try mysql://host/database?ssl-ca=FILE, "
        "ssl-cert=, ssl-key=)");
  const std::string url_has_files =
      "the URL of a PostgreSQL server names the files for TLS (try "
      "postgresql://host/database?sslrootcert=FILE, sslcert=, sslkey=)";
  const Error authority = error_of({.urls = {"postgresql://a/app"}, .cacert = "ca.pem"}, {});
  CHECK(authority.code == ErrorCode::usage);
  CHECK(authority.text == "--cacert: " + url_has_files);
  CHECK(error_of({.urls = {"postgresql://a/app"}, .cert = "me.pem"}, {}).text == "--cert: " + url_has_files);
  CHECK(meant(with_url("postgresql://a/app"), {"RLOCK_CACERT=ca.pem"}).endpoints.size() == 1);  // may be for another
  CHECK(error_of({.urls = {"postgresql://a/app"}, .quorum = QuorumRule::all}, {}).code == ErrorCode::usage);
}

TEST_CASE("server: one master by two of its sentinels has one vote")
{
  const std::string one = "redis+sentinel://a,b/m";
  CHECK(error_of({.urls = {one, "redis+sentinel://b,c/m"}}, {}).text.find("cannot vote twice") != std::string::npos);
  CHECK(meant({.urls = {one, "redis+sentinel://a,b/n"}}, {}).endpoints.size() == 2);
  CHECK(meant({.urls = {one, "redis+sentinel://c,d/m"}}, {}).endpoints.size() == 2);
}

TEST_CASE("server: where the password comes from")
{
  const TempFile file("from file\nsecond line\n");
  const Variables variables{"RLOCK_PASSWORD=ours", "REDISCLI_AUTH=theirs"};

  RawServer typed = with_url("redis://h");
  CHECK(meant(typed, {}).endpoints.front().password.empty());
  CHECK(meant(typed, {"RLOCK_PASSWORD=", "REDISCLI_AUTH=theirs"}).endpoints.front().password == "theirs");
  CHECK(meant(typed, variables).endpoints.front().password == "ours");
  const std::string inherited = "RLOCK_PASSWORD_FILE=" + file.path();
  CHECK(meant(typed, {inherited, "REDISCLI_AUTH=theirs"}).endpoints.front().password == "from file");
  CHECK(meant(typed, {inherited, "RLOCK_PASSWORD=ours"}).endpoints.front().password == "ours");
  typed.password_file = file.path();
  CHECK(meant(typed, variables).endpoints.front().password == "from file");
  typed.urls = {"redis://:inurl@h"};
  CHECK(meant(typed, variables).endpoints.front().password == "inurl");
  CHECK(meant(with_url("local:"), variables).endpoints.front().password.empty());
}

TEST_CASE("server: a refused login names the user, and where the password stands that was tried")
{
  const auto login = [](const RawServer& typed, const Variables& variables) { return meant(typed, variables).login; };
  CHECK(login({}, {}).empty());
  CHECK(login(with_url("redis://ann@h"), {}).empty());  // which may be a password without its colon
  CHECK(login(with_url("redis://ann:pw@h"), {"RLOCK_PASSWORD=hush"}) ==
        "the user 'ann' and the password in the URL of --server");
  CHECK(login({}, {"RLOCK_SERVER=redis://:pw@h"}) == "the user 'default' and the password in the URL of RLOCK_SERVER");
  CHECK(login({}, {"RLOCK_PASSWORD=hush"}) == "the user 'default' and the password in RLOCK_PASSWORD");
  CHECK(login(with_url("etcd://ann@h"), {"ETCDCTL_PASSWORD=hush"}) ==
        "the user 'ann' and the password in ETCDCTL_PASSWORD");
  const TempFile file("hush\n");
  const std::string in_file = "the user 'default' and the password in " + file.path() + ", which ";
  CHECK(login({}, {"RLOCK_PASSWORD_FILE=" + file.path()}) == in_file + "RLOCK_PASSWORD_FILE names");
  CHECK(login({.password_file = file.path()}, {"RLOCK_PASSWORD=hush"}) == in_file + "--password-file names");
  CHECK(login({.urls = {"redis://:a@h", "redis://:b@i", "redis://j"}}, {"RLOCK_PASSWORD=hush"}).empty());

  const std::string refusal = "h refused the user or password";
  CHECK(with_login(refusal + std::string(check_login), "L") == refusal + " (check L)");
  CHECK(with_login(refusal + " (check the URL, RLOCK_PASSWORD or --password-file; rlock acl prints the rights)", "L") ==
        refusal + " (check L; rlock acl prints the rights)");
  CHECK(with_login(refusal + std::string(check_login), "") == refusal + std::string(check_login));
}

TEST_CASE("server: the password that a server's own tools read is for no other kind of server")
{
  const TempFile file("from file\n");
  const std::string redis = "redis://h";
  const std::string postgres = "postgresql://h/app";
  struct Row {
    const char* why;
    std::string url;
    Variables variables;
    std::string password;
  };
  const Row rows[] = {
      {"of redis-cli", redis, {"REDISCLI_AUTH=theirs", "PGPASSWORD=other"}, "theirs"},
      {"of psql", postgres, {"REDISCLI_AUTH=other", "PGPASSWORD=theirs"}, "theirs"},
      {"of mysql", "mariadb://h/app", {"PGPASSWORD=other", "MYSQL_PWD=theirs"}, "theirs"},
      {"of redis-cli alone", postgres, {"REDISCLI_AUTH=other"}, ""},
      {"of psql alone", redis, {"PGPASSWORD=other"}, ""},
      {"of rlock", postgres, {"RLOCK_PASSWORD=ours", "PGPASSWORD=theirs"}, "ours"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.why);
    CHECK(meant(with_url(row.url), row.variables).endpoints.front().password == row.password);
  }

  Environment configured({"REDISCLI_AUTH=theirs"});
  configured.configure({{.option = "--password-file", .values = {file.path()}, .where = "/etc/rlock.toml:3"}});
  for (const auto& [url, password] : {std::pair{redis, "theirs"}, std::pair{postgres, "from file"}}) {
    const Result<ServerSpec> server = resolve_server(with_url(url), configured);
    REQUIRE(server);
    CHECK(server->endpoints.front().password == password);
  }
}

TEST_CASE("server: what the job gets of user and password")
{
  const TempFile file("from file\n");
  RawServer typed = with_url("redis://a%40b:inurl@h/3");
  CHECK(meant(typed, {}).for_job().urls == "redis://a%40b@h:6379/3");
  typed.password_file = file.path();
  CHECK_FALSE(meant(typed, {}).for_job().password_file);  // the URL has one
  typed.urls = {"unix://ann@/run/x.sock", "redis://h"};
  CHECK(meant(typed, {}).for_job().urls == "unix://ann@/run/x.sock redis://h:6379");
  CHECK(meant(typed, {}).for_job().password_file == file.path());
  CHECK_FALSE(meant(with_url("redis://h"), {"RLOCK_PASSWORD=x"}).for_job().password_file);
  typed.urls = {"redis+sentinel://ann@a/m?sentinel_username=eve&sentinel_tls=yes"};
  CHECK(meant(typed, {"RLOCK_SENTINEL_PASSWORD=p"}).for_job().urls ==
        "redis+sentinel://ann@a:26379/m?sentinel_tls=yes&sentinel_username=eve");

  // The password of a URL for the same server is for its user.
  const Variables known{"RLOCK_SERVER=redis://ann@h", "REDIS_URL=redis://ann:pw@h"};
  CHECK(meant({}, known).endpoints.front().password == "pw");
  CHECK(meant({}, {"RLOCK_SERVER=redis://eve@h", known[1]}).endpoints.front().password.empty());
  Environment configured({"REDIS_URL=redis://ann:pw@h"});
  configured.configure({{.option = "--server", .values = {"redis://h"}, .where = "/etc/rlock.toml:3"}});
  const Result<ServerSpec> of_file = resolve_server({}, configured);
  REQUIRE(of_file);
  CHECK(of_file->endpoints.front().user + ":" + of_file->endpoints.front().password == "ann:pw");
}

TEST_CASE("server: where the sentinels' own password comes from, and the server's is not theirs")
{
  const std::string url = "redis+sentinel://ann:pw@a,b/m";
  const auto sentinels = [](const std::string& typed, const Variables& variables) {
    const ServerSpec server = meant(with_url(typed), variables);
    const Sentinels& one = server.endpoints.front().sentinels;
    return one.user + ":" + one.password;
  };
  CHECK(sentinels(url, {"RLOCK_PASSWORD=x", "REDISCLI_AUTH=y"}) == ":");
  CHECK(sentinels(url, {"RLOCK_SENTINEL_USERNAME=u", "RLOCK_SENTINEL_PASSWORD=p"}) == "u:p");
  CHECK(sentinels(url + "?sentinel_password=q", {"RLOCK_SENTINEL_USERNAME=u", "RLOCK_SENTINEL_PASSWORD=p"}) == ":q");
  CHECK(sentinels(url + "?sentinel_username=v", {"RLOCK_SENTINEL_PASSWORD=p"}) == "v:p");
  CHECK(sentinels("redis+sentinel://a,b/m", {"REDIS_URL=" + url + "?sentinel_username=v&sentinel_password=q"}) ==
        "v:q");
  CHECK(sentinels("redis+sentinel://a,c/m", {"REDIS_URL=" + url + "?sentinel_password=q"}) == ":");
}

TEST_CASE("server: the files for TLS are for whichever of master and sentinels speaks it")
{
  RawServer typed = with_url("redis+sentinel://a/m?sentinel_tls=yes");
  typed.cacert = "ca.pem";
  const ServerSpec server = meant(typed, {});
  CHECK_FALSE(server.endpoints.front().tls);
  REQUIRE(server.endpoints.front().sentinels.tls);
  CHECK(server.endpoints.front().sentinels.tls->authorities == "ca.pem");
  typed.urls = {"redis+sentinel://a/m"};
  CHECK(error_of(typed, {}).text.find("without TLS") != std::string::npos);
}

TEST_CASE("server: a password file that gives none is 78")
{
  const TempFile empty("\n");
  for (const std::string& path : {empty.path(), std::string("/nonexistent/x"), std::string("/tmp")}) {
    const Error error = error_of({.password_file = path}, {});
    CHECK(error.code == ErrorCode::config);
    CHECK(error.text.starts_with("--password-file: cannot read a password from " + path + ": "));
    const Error inherited = error_of({}, {"RLOCK_PASSWORD_FILE=" + path});
    CHECK(inherited.code == ErrorCode::config);
    CHECK(inherited.text.starts_with("RLOCK_PASSWORD_FILE: cannot read a password from " + path + ": "));
  }
}

TEST_CASE("list: nothing in a prefix is special")
{
  RawKeys typed;
  CHECK(resolve_pattern(typed, "a*") == "a*");
  typed.prefix = "x[1]*?\\:";
  CHECK(resolve_pattern(typed, "*") == "x\\[1\\]\\*\\?\\\\:*");
}
