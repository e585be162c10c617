// SPDX-License-Identifier: Apache-2.0
// The rights that a user needs.
#pragma once

#include <string>
#include <string_view>
#include "stores/mongo/mongo_url.h"

namespace rlock::mongo {

// What an administrator runs in mongosh on the database, so that `user` may keep locks there.
std::string rights_script(const ConnectionSpec& spec, std::string_view user);

}  // namespace rlock::mongo
