// SPDX-License-Identifier: Apache-2.0
#include "stores/s3/s3_url.h"

#include "stores/open.h"
#include "stores/s3/s3_credentials.h"

#include "support/limits.h"
#include "support/test.h"

#include <map>

using namespace rlock::test;
using namespace rlock::s3;

namespace {

ConnectionSpec spec_of(const std::string& url)
{
  const auto endpoint = parse_s3_url(url);
  REQUIRE_MESSAGE(endpoint, endpoint.error().text);
  return connection_spec(*endpoint);
}

using Texts = std::map<std::string, std::string>;

CredentialSources sources(const Texts& variables, const Texts& files = {})
{
  const auto in = [](const Texts& texts) {
    return [texts](const std::string& name) {
      const auto found = texts.find(name);
      return found == texts.end() ? std::string() : found->second;
    };
  };
  return {.variable = in(variables), .file = in(files)};
}

}  // namespace

TEST_CASE("s3 url: the bucket, the prefix and the parameters")
{
  const ConnectionSpec plain = spec_of("s3://shop-locks");
  CHECK(plain.bucket == "shop-locks");
  CHECK(plain.prefix == "rlock");
  CHECK(plain.clock_skew == 2s);
  CHECK(plain.uses_tls());
  CHECK_FALSE(plain.is_this_host());
  const ConnectionSpec full = spec_of(
      "s3://AKIA:hush@shop.locks/a/b-c/?region=eu-central-1&endpoint=http://"
      "127.0.0.1:9000&profile=ops&clock-skew=500ms");
  CHECK(full.bucket == "shop.locks");
  CHECK(full.prefix == "a/b-c");
  CHECK(full.region == "eu-central-1");
  CHECK(full.endpoint == "http://127.0.0.1:9000");
  CHECK(full.profile == "ops");
  CHECK(full.clock_skew == 500ms);
  CHECK(full.user == "AKIA");
  CHECK(full.password == "hush");
  CHECK_FALSE(full.uses_tls());
  CHECK(full.is_this_host());
  CHECK_FALSE(full.url.find("hush") != std::string::npos);
}

TEST_CASE("s3 url: what cannot be meant is refused with a reason")
{
  struct Row {
    const char* url;
    const char* why;
  };
  for (const Row& row :
       {Row{"s3:bucket", "it has no //"}, Row{"s3://", "no name of a bucket"}, Row{"s3://Big/x", "no name of a bucket"},
        Row{"s3://ab", "no name of a bucket"}, Row{"s3://bucket/a b", "the prefix"},
        Row{"s3://bucket/a//b", "the prefix"}, Row{"s3://bucket/.a", "the prefix"},
        Row{"s3://bucket/%41", "the prefix"}, Row{"s3://bucket?colour=blue", "no parameter colour"},
        Row{"s3://bucket?region=", "region names no region"},
        Row{"s3://bucket?region=a&region=b", "region is given twice"}, Row{"s3://bucket?profile=", "profile is empty"},
        Row{"s3://bucket?endpoint=store:9000", "no https://host:port"},
        Row{"s3://bucket?endpoint=https://store/path", "no https://host:port"},
        Row{"s3://bucket?clock-skew=2h", "no duration up to 1m"}, Row{"s3://bucket?clock-skew=soon", "no duration"},
        Row{"s3://:hush@bucket", "needs an access key"}}) {
    CAPTURE(row.url);
    const auto endpoint = parse_s3_url(row.url);
    REQUIRE_FALSE(endpoint);
    CHECK(endpoint.error().code == ErrorCode::usage);
    CHECK_MESSAGE(has(endpoint.error().text, row.why), endpoint.error().text);
    CHECK_FALSE(has(endpoint.error().text, "hush"));
  }
}

TEST_CASE("s3 url: each name has a key of its own, of which a path and a signature leave every byte as it is")
{
  for (const std::string name : {"stock", "a/b", "..", ".fit", "~", "a~2fb", "Ünïcode", "a b", "%41", "\xff"}) {
    CAPTURE(name);
    const std::string key = key_of_lock(name);
    CHECK(key.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.~") ==
          std::string::npos);
    CHECK_FALSE(key.starts_with('.'));
    CHECK(lock_of_key(key) == name);
  }
  CHECK(key_of_lock("a/b") == "a~2fb");
  for (const char* key : {".fit", ".probe-1", "a~", "a~zz", "a~41", "a/b"}) {
    CHECK_FALSE(lock_of_key(key));
  }
}

TEST_CASE("s3 credentials: who signs, in which order they are looked for")
{
  const Texts files{{"/home/ann/.aws/credentials",
                     "[default]\naws_access_key_id = D\naws_secret_access_key=ds\n[ops]\naws_access_key_id=O\n"
                     "aws_secret_access_key = os  \naws_session_token=ot\n"},
                    {"/home/ann/.aws/config",
                     "# comment\n[default]\nregion=eu-west-1\n[profile ops]\nregion = us-west-2\n  nested = 1\n"
                     "[profile robot]\ncredential_process = /bin/x\n"}};
  Texts variables{{"HOME", "/home/ann"}};
  const auto found = [&](const std::string& url) { return find_credentials(spec_of(url), sources(variables, files)); };
  const auto by_default = must(found("s3://bucket"));
  CHECK(by_default.access_key == "D");
  CHECK(by_default.secret == "ds");
  CHECK(by_default.region == "eu-west-1");
  const auto by_profile = must(found("s3://bucket?profile=ops&region=x-1"));
  CHECK(by_profile.access_key == "O");
  CHECK(by_profile.secret == "os");
  CHECK(by_profile.token == "ot");
  CHECK(by_profile.region == "x-1");
  CHECK(has(found("s3://bucket?profile=robot").error().text, "credential_process"));
  CHECK(found("s3://bucket?profile=nobody").error().code == ErrorCode::config);
  variables["AWS_PROFILE"] = "ops";
  CHECK(must(found("s3://bucket")).access_key == "O");
  variables["AWS_ACCESS_KEY_ID"] = "V";
  CHECK(found("s3://bucket").error().code == ErrorCode::refused);  // it has no secret
  variables["AWS_SECRET_ACCESS_KEY"] = "vs";
  CHECK(must(found("s3://bucket")).access_key == "V");
  CHECK(must(found("s3://bucket?profile=ops")).access_key == "O");
  const auto by_url = must(found("s3://U:us@bucket"));
  CHECK(by_url.access_key == "U");
  CHECK(by_url.token.empty());
  CHECK(find_credentials(spec_of("s3://bucket"), sources({})).error().code == ErrorCode::refused);
  CHECK(must(find_credentials(spec_of("s3://U:us@bucket"), sources({}))).region == "us-east-1");
}

TEST_CASE("s3 acl: the policy is for the objects below the prefix, and lets the user list the bucket")
{
  const Endpoint endpoint = must(parse_s3_url("s3://shop-locks/cron"));
  const std::string text = must(engine_of(endpoint).rights(endpoint, "cron", {}));
  for (const char* part :
       {"arn:aws:s3:::shop-locks/cron/*", "\"s3:ListBucket\", \"Resource\": \"arn:aws:s3:::shop-locks\"",
        "s3:GetObject", "s3:PutObject", "s3:DeleteObject"}) {
    CHECK(has(text, part));
  }
}
