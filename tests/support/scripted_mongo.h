// SPDX-License-Identifier: Apache-2.0
// What a server that speaks as much of MongoDB's protocol as a test needs says.
#pragma once

#include "stores/mongo/mongo_document.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace rlock::test {

using mongo::Document;

// Skips the test case where there is no libmongoc.
void need_libmongoc();

// The answer to the first request of libmongoc, an OP_QUERY: an OP_REPLY with one document.
std::string reply_to(std::string_view request, const std::string& document);
// The answer to a later request, an OP_MSG.
std::string message_for(std::string_view request, const std::string& document);
Document mongo_hello(std::int32_t wire_version, bool is_primary);

}  // namespace rlock::test
