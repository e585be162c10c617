// SPDX-License-Identifier: Apache-2.0
#include "cli/server.h"

#include "cli/keys.h"

#include <doctest/doctest.h>

#include <cstdio>
#include <cstdlib>

#include <unistd.h>

namespace rlock::cli {
namespace {

using Variables = std::vector<std::string>;

ServerSpec meant(const TypedServer& typed, const Variables& variables)
{
  return *meant_server(typed, Environment(variables));
}

Error error_of(const TypedServer& typed, const Variables& variables)
{
  return meant_server(typed, Environment(variables)).error();
}

TypedServer with_url(const std::string& url) { return {{url}, {}, {}}; }

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
  CHECK(meant(with_url("redis://arg:3"), both).endpoint.host == "arg");
  CHECK(meant({}, both).endpoint.host == "one");
  CHECK(meant({}, {"RLOCK_SERVER=", "REDIS_URL=redis://two:2"}).endpoint.host == "two");
  CHECK(meant({}, {"XRLOCK_SERVER=redis://no:1"}).endpoint.shown() == "redis://127.0.0.1:6379");
  CHECK(meant(with_url("local:"), {}).endpoint.kind == Endpoint::Kind::local);
}

TEST_CASE("server: a bad URL is 64 in the arguments, 78 in the environment, and named")
{
  const Error typed = error_of(with_url("http://h"), {});
  CHECK(typed.fault == Fault::usage);
  CHECK(typed.text.starts_with("--server: "));

  const Error inherited = error_of({}, {"REDIS_URL=redis://:hunter2@"});
  CHECK(inherited.fault == Fault::config);
  CHECK(inherited.text.starts_with("REDIS_URL: "));
  CHECK(inherited.text.find("hunter2") == std::string::npos);

  CHECK(error_of({{"redis://a", "redis://b"}, {}, {}}, {}).text ==
        "--server: given 2 times, but this version takes one server");
}

TEST_CASE("server: where the password comes from")
{
  const TempFile file("from file\nsecond line\n");
  const Variables variables{"RLOCK_PASSWORD=ours", "REDISCLI_AUTH=theirs"};

  TypedServer typed = with_url("redis://h");
  CHECK(meant(typed, {}).endpoint.password.empty());
  CHECK(meant(typed, {"RLOCK_PASSWORD=", "REDISCLI_AUTH=theirs"}).endpoint.password == "theirs");
  CHECK(meant(typed, variables).endpoint.password == "ours");
  typed.password_file = file.path();
  CHECK(meant(typed, variables).endpoint.password == "from file");
  typed.urls = {"redis://:inurl@h"};
  CHECK(meant(typed, variables).endpoint.password == "inurl");
  CHECK(meant(with_url("local:"), variables).endpoint.password.empty());
}

TEST_CASE("server: a password file that gives none is 78")
{
  const TempFile empty("\n");
  for (const std::string& path :
       {empty.path(), std::string("/nonexistent/x"), std::string("/tmp")}) {
    const Error error = error_of({{}, {}, path}, {});
    CHECK(error.fault == Fault::config);
    CHECK(error.text.starts_with("--password-file: cannot read a password from " + path + ": "));
  }
}

TEST_CASE("list: nothing in a prefix is special")
{
  TypedKeys typed;
  CHECK(meant_pattern(typed, "a*") == "a*");
  typed.prefix = "x[1]*?\\:";
  CHECK(meant_pattern(typed, "*") == "x\\[1\\]\\*\\?\\\\:*");
}

}  // namespace rlock::cli
