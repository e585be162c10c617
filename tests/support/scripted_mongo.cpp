// SPDX-License-Identifier: Apache-2.0
#include "support/scripted_mongo.h"

#include "support/skip.h"

namespace rlock::test {
namespace {

void append(std::string& bytes, std::uint32_t number)
{
  for (int shift = 0; shift < 32; shift += 8) {
    bytes += static_cast<char>(number >> shift & 0xFFU);
  }
}

}  // namespace

std::string reply_to(std::string_view request, const std::string& document)
{
  std::string message;
  append(message, static_cast<std::uint32_t>(36 + document.size()));
  append(message, 1);
  message += request.substr(4, 4);  // the number of the request
  append(message, 1);               // OP_REPLY
  append(message, 8);               // flags
  append(message, 0);               // cursor
  append(message, 0);
  append(message, 0);
  append(message, 1);  // one document
  return message + document;
}

std::string message_for(std::string_view request, const std::string& document)
{
  std::string message;
  append(message, static_cast<std::uint32_t>(21 + document.size()));
  append(message, 1);
  message += request.substr(4, 4);
  append(message, 2013);  // OP_MSG
  append(message, 0);     // flags
  message += '\0';        // one document
  return message + document;
}

Document mongo_hello(std::int32_t wire_version, bool is_primary)
{
  Document document;
  document.add_flag("ismaster", is_primary).add_flag("isWritablePrimary", is_primary).add_flag("helloOk", true);
  document.add_small("minWireVersion", 0).add_small("maxWireVersion", wire_version).add_small("ok", 1);
  document.add_small("maxBsonObjectSize", 1 << 24).add_small("maxMessageSizeBytes", 48'000'000);
  document.add_small("maxWriteBatchSize", 100'000);
  return document;
}

void need_libmongoc() { skip_if(!rlock::mongo::libmongoc(), "no libmongoc"); }

}  // namespace rlock::test
