// SPDX-License-Identifier: Apache-2.0
// The policy with which a user may keep locks in a bucket. Private to stores/s3.
#pragma once

#include <string>
#include "stores/s3/s3_url.h"

namespace rlock::s3 {

// A policy of IAM, for the user to whom it is attached.
std::string policy(const ConnectionSpec& spec);

}  // namespace rlock::s3
