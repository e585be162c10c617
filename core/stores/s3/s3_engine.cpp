// SPDX-License-Identifier: Apache-2.0
// All that the URLs of a bucket mean.
#include "stores/engine.h"

#include "stores/s3/s3_backend.h"

namespace rlock::s3 {
namespace {

// A policy of IAM, for the user to whom it is attached. Without the right to list the bucket, whatever the prefix, a GET of an object that
// is not there is refused instead of answered.
Result<std::string> rights(const Endpoint& endpoint, std::string_view, std::span<const std::string>)
{
  const ConnectionSpec spec = connection_spec(endpoint);
  const std::string bucket = "arn:aws:s3:::" + spec.bucket;
  return R"({"Version": "2012-10-17", "Statement": [
  {"Effect": "Allow", "Action": ["s3:GetObject", "s3:PutObject", "s3:DeleteObject"], "Resource": ")" +
         bucket + "/" + spec.prefix + R"(/*"},
  {"Effect": "Allow", "Action": "s3:ListBucket", "Resource": ")" +
         bucket + "\"}\n]}\n";
}

constexpr std::array url_forms{
    UrlForm{"s3://[ACCESS@]bucket[/prefix]",
            "a bucket of Amazon S3, or of a store with its API (?endpoint=https://host:port), with ?region=NAME, "
            "?profile=NAME, ?clock-skew=DUR; use --ttl 60s"}};
constexpr std::array<std::string_view, 1> rights_examples{
    "rlock acl -S s3://shop-locks/cron --user cron >policy.json  # for IAM"};

}  // namespace

extern constinit const Engine engine{
    .name = "s3",
    .parse = parse_s3_url,
    .open = open_records<connection_spec, open_backend>,
    .title = "Amazon S3",
    .page = "s3",
    .url_forms = url_forms,
    .refuses_sync = "every write to a bucket is on all of its replicas already (leave out --sync)",
    .refuses_quorum = "a bucket is no part of a quorum (give it alone)",
    .refuses_tls_files =
        "a bucket is reached with the certificates that the system trusts (leave out --cacert, --cert and --tls-key)",
    .rights = rights,
    .rights_examples = rights_examples,
};

}  // namespace rlock::s3
