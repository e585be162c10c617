// SPDX-License-Identifier: Apache-2.0
#include "stores/s3/s3_rights.h"

namespace rlock::s3 {

// Without the right to list the bucket, whatever the prefix, a GET of an object that is not there is refused instead of answered.
std::string policy(const ConnectionSpec& spec)
{
  const std::string bucket = "arn:aws:s3:::" + spec.bucket;
  return R"({"Version": "2012-10-17", "Statement": [
  {"Effect": "Allow", "Action": ["s3:GetObject", "s3:PutObject", "s3:DeleteObject"], "Resource": ")" +
         bucket + "/" + spec.prefix + R"(/*"},
  {"Effect": "Allow", "Action": "s3:ListBucket", "Resource": ")" +
         bucket + "\"}\n]}\n";
}

}  // namespace rlock::s3
