// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"
#include "support/test.h"

using namespace rlock::test;

namespace {

std::string shown(const std::vector<std::string>& words) { return shown_command(words); }

}  // namespace

TEST_CASE("secrets: user and password of a URL are masked")
{
  CHECK(without_secrets("./job.sh --db redis://u:geheim@h/0 -x") == "./job.sh --db redis://***@h/0 -x");
  CHECK(without_secrets("a://p@h b://q@h") == "a://***@h b://***@h");
  CHECK(without_secrets("a://u:p@ss@h") == "a://***@h");
  CHECK(without_secrets("x a://u:p@h,i/m?sentinel_password=q&sentinel_tls=no y") ==
        "x a://***@h,i/m?sentinel_password=***&sentinel_tls=no y");
  CHECK(without_secrets("mail bob@h http://h/a@b http://h:80/a@b http://[::1]/a@b") ==
        "mail bob@h http://h/a@b http://h:80/a@b http://[::1]/a@b");
  CHECK(without_secrets("") == "");
  CHECK(without_secrets("redis://:p/w@h/0 a://u:p#1@h") == "redis://***@h/0 a://***@h");
}

TEST_CASE("secrets: the value of a secret option or assignment is masked, whatever is in it")
{
  CHECK(shown({"job", "--password=S3 cret;x", "-v"}) == "job --password=*** -v");
  CHECK(shown({"job", "--password", "S3 cret", "-v"}) == "job --password *** -v");
  CHECK(shown({"env", "PGPASSWORD=S3 cret", "job"}) == "env PGPASSWORD=*** job");
  CHECK(shown({"docker", "run", "--env=DB_TOKEN=a b", "image"}) == "docker run --env=DB_TOKEN=*** image");
  CHECK(shown({"curl", "https://h/?x=1&api_key=a&b"}) == "curl 'https://h/?x=1&api_key=***'");
  for (const char* name :
       {"passwd", "PASSWD", "Secret", "auth-token", "api-key", "API_KEY", "apikey", "clientSecret"}) {
    CAPTURE(name);
    const std::string option = std::string("--") + name;
    CHECK(shown({"job", option + "=V"}) == "job " + option + "=***");
    CHECK(shown({"job", option, "V"}) == "job " + option + " ***");
    CHECK(shown({"env", std::string(name) + "=V"}) == std::string("env ") + name + "=***");
  }
  CHECK(shown({"job", "-token", "V"}) == "job -token ***");
  CHECK(shown({"job", "--no-password", "--password", "V", "x"}) == "job --no-password *** *** x");
  CHECK(shown({"job", "--password"}) == "job --password");
  CHECK(shown({"job", "--password="}) == "job --password=");
  CHECK(shown({"job", "--key=k", "--user", "bob", "-k", "token:7"}) == "job --key=k --user bob -k token:7");
}

TEST_CASE("secrets: what a shell will read is masked, and the rest of it is left")
{
  const auto script = [](const std::string& text) { return without_secrets(text); };
  CHECK(script("PGPASSWORD=S3cret psql -h db") == "PGPASSWORD=*** psql -h db");
  CHECK(script("TOKEN='a b' job; echo done") == "TOKEN=*** job; echo done");
  CHECK(script("TOKEN=\"a \\\" b\"c job") == "TOKEN=*** job");
  CHECK(script("TOKEN=a\\ b job") == "TOKEN=*** job");
  CHECK(script("TOKEN=x; make && make install") == "TOKEN=***; make && make install");
  CHECK(script("job --password S3cret --db x | tee log") == "job --password *** --db x | tee log");
  CHECK(script("job --password 'a b' -x") == "job --password *** -x");
  CHECK(script("curl -d 'token=a b' http://h") == "curl -d 'token=***' http://h");
  CHECK(script("sh -c \"job --token x\"") == "sh -c \"job --token ***\"");
  CHECK(script("job --token; next") == "job --token; next");
  CHECK(script("make && make install") == "make && make install");
  CHECK(shown({"bash", "-lc", "TOKEN=x job"}) == "bash -lc 'TOKEN=*** job'");
  CHECK(shown({"ssh", "h", "mysql --password=S3cret -e x"}) == "ssh h 'mysql --password=*** -e x'");
}

TEST_CASE("secrets: a command is quoted so that a shell reads the same words")
{
  CHECK(shown({"sh", "-c", "echo \"a  b\" >it's"}) == "sh -c 'echo \"a  b\" >it'\\''s'");
  CHECK(shown({"./job.sh", "", "a b", "x*", "--day=2026-11-23", "a/b:c@d"}) ==
        "./job.sh '' 'a b' 'x*' --day=2026-11-23 a/b:c@d");
  CHECK(shown({"echo", "it's\n", "\\n", "TOKEN=it's\n"}) == R"(echo $'it\x27s\n' '\n' TOKEN=***)");
}

TEST_CASE("secrets: the words of a quoted script outlast a second masking")
{
  for (const char* script :
       {"TOKEN=x job --all", "TOKEN='a b' job; echo done", "job --token x; next", "job --password x | tee log",
        "curl -d 'token=a b' http://h", "sh -c \"job --token x\" and more", "(job --token x) && next"}) {
    const std::string once = shown({"sh", "-c", script});
    CAPTURE(once);
    CHECK(without_secrets(once) == once);
    CHECK(once.find("TOKEN=x") == std::string::npos);
  }
}

TEST_CASE("secrets: masking twice changes nothing")
{
  for (const char* text :
       {"job --password=x -v", "job --password x y", "sh -c TOKEN='a b' job", "redis://u:p@h a=b", "x 'token=a b' y",
        "job --no-password --password x y", "http://atoken:=b?token=1&y=2#z/x@"}) {
    CAPTURE(text);
    const std::string once = without_secrets(text);
    CHECK(without_secrets(once) == once);
  }
}
