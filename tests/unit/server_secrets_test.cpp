// SPDX-License-Identifier: Apache-2.0
// What an error of a server's URL never quotes: a part of its login.
#include "base/text.h"
#include "cli/options/option_table.h"
#include "stores/open.h"
#include "support/test.h"

using namespace rlock::test;

namespace {

// "": there is no client library for this kind of server.
std::string error_of(const std::string& url)
{
  const auto endpoint = parse_server(url);
  REQUIRE_MESSAGE(!endpoint, url);
  if (endpoint.error().code == ErrorCode::config) {
    return "";
  }
  CHECK_MESSAGE(endpoint.error().code == ErrorCode::usage, url);
  return endpoint.error().text;
}

constexpr const char* schemes[] = {"redis",    "rediss",    "redis+sentinel", "redis+cluster", "postgresql",
                                   "postgres", "mysql",     "mariadb",        "mongodb",       "mongodb+srv",
                                   "etcd",     "zookeeper", "zookeeper+tls",  "etcds",         "s3"};

}  // namespace

TEST_CASE("server secrets: a password with a character that is not escaped is refused, and no error quotes any of it")
{
  for (const std::string scheme : schemes) {
    for (const char* login :
         {"deploy:ge/hush", "deploy:ge?hush", "deploy:12/hush", "deploy:12?hush", "deploy:12?a=hush", "deploy:hu/ge",
          "deploy:hush/12", "deploy:hush?12", ":ge/hush", "deploy:g@e/hush", "deploy:12/@hush", "deploy:[hush/x",
          "deploy:12,hush:ge/x", "deploy:hush%/x", "12/hush", "hush?x"}) {
      for (const char* rest :
           {"@localhost:5432/fresh", "@localhost/fresh?create=no", "@localhost:x/fresh", "@/fresh", "@"}) {
        const std::string url = scheme + "://" + login + rest;
        CAPTURE(url);
        const auto endpoint = parse_server(url);
        const std::string text = endpoint ? endpoint->shown() : error_of(url);  // Redis takes an unescaped ? and @
        CHECK_MESSAGE(!has(text, "hush"), text);
        CHECK_MESSAGE(!has(text, "deploy"), text);
        CHECK((!endpoint || scheme.starts_with("redis")));
      }
    }
  }
}

TEST_CASE("server secrets: no error quotes a login whose @ is missing, and no parameter")
{
  for (const std::string scheme : schemes) {
    for (const char* rest :
         {"deploy:hush", "deploy:hush/app", "deploy:hu/hush", "a:1,deploy:hush/app", ":hush/app",
          "deploy:hush@localhost/app?colour=hush", "[::1]/app?passw%6Frd=hush&colour=1", "localhost/app?Password=hush",
          "localhost/app?password=hu&password=hush&colour=1", "localhost/app?sslpassword=hush",
          "localhost/app?sslp%61ssword=hush", "localhost/app?colour=1&password=hush"}) {
      const std::string url = scheme + "://" + rest;
      CAPTURE(url);
      const auto endpoint = parse_server(url);
      const std::string text = endpoint ? endpoint->shown() + endpoint->without_passwords() : endpoint.error().text;
      CHECK_MESSAGE(!has(text, "hush"), text);
    }
  }
}

TEST_CASE("server secrets: what an error quotes of a keyword string is without its password and what follows it")
{
  for (const char* text :
       {"host=localhost port=5432 user=deploy password=hush dbname=fresh", "host=localhost password = hush",
        "password=hush@x host=localhost", "password='hu hush' host=localhost", "password = 'a@hush b' host=h",
        "host=h PASSWORD=hush", "host=h sslpassword=hush", "Server=h;Uid=bob;Pwd=hush;", "user=a@b password=hush",
        "host=h passwd=hush", "host=h password=a?hush", "host=h password=a://hush"}) {
    CAPTURE(std::string(text));
    const std::string error = error_of(text);
    CHECK_MESSAGE(!has(error, "hush"), error);
    CHECK(has(error, "it does not begin with scheme://"));
  }
  CHECK(
      has(error_of("host=localhost user=deploy password=hush dbname=x"), "'host=localhost user=deploy password=***'"));
}

TEST_CASE("server url: an unknown scheme is told with all that rlock knows")
{
  for (const std::string scheme : schemes) {
    if (scheme == "postgres") {
      continue;  // another name of postgresql
    }
    CHECK(has(error_of("http://h/"), scheme + "://"));
    CHECK(has(error_of("h/"), scheme + "://"));
  }
}

TEST_CASE("server url: a parameter of rlock that is given twice is named so")
{
  for (const char* url : {"postgresql:///app?create=no&create=yes", "postgresql:///app?table=a&create=no&table=b",
                          "mysql:///app?create=no&create=yes", "mongodb://h/app?collection=a&collection=b"}) {
    CAPTURE(std::string(url));
    const std::string text = error_of(url);
    CHECK_MESSAGE((text.empty() || has(text, "given twice")), text);
  }
}

TEST_CASE("server url: a path after each of several hosts is refused, because it would stand for a longer path")
{
  for (const char* url : {"postgresql://a/app,b/app", "mysql://a:3306/app,b:3306/app", "mariadb://a/app,b/app",
                          "mongodb://a/app,b/app", "etcd://a/app,b/app", "zookeeper+tls://a/app,b/app"}) {
    CAPTURE(std::string(url));
    const std::string text = error_of(url);
    CHECK_MESSAGE((text.empty() || has(text, "stands once, after the last host")), text);
  }
}

TEST_CASE("server secrets: an @ that is no part of a login is written %40 behind the host")
{
  const auto parameter = parse_server("postgresql:///app?host=@run&create=no");
  if (!parameter && parameter.error().code != ErrorCode::config) {
    CHECK_MESSAGE(has(parameter.error().text, "%40"), parameter.error().text);
  }
  CHECK(parameter.error().code != ErrorCode::internal);
  CHECK(parse_server("etcd://h/a%40b"));
  CHECK(parse_server("zookeeper://h/a%40b"));
  CHECK(parse_server("mysql://u:p%2Fw%40@h/a%40b"));
  CHECK(has(error_of("mysql://u:p/w@h/a"), "write / ? and @ in a user or password as %2F, %3F and %40"));
}

TEST_CASE("server secrets: a word of the command line and a command that are shown have no login of a database")
{
  for (const std::string scheme : {"postgresql", "mysql", "mongodb+srv", "etcds", "zookeeper+tls", "redis"}) {
    const std::string url = scheme + "://deploy:12/hush@localhost/fresh";
    CAPTURE(url);
    CHECK(without_secrets("psql " + url + " -x") == "psql " + scheme + "://***@localhost/fresh -x");
    CHECK(shown_command(std::vector<std::string>{"psql", url}) == "psql " + scheme + "://***@localhost/fresh");
    CHECK_FALSE(has(cli::shown_word(url), "hush"));
  }
}
