// SPDX-License-Identifier: Apache-2.0
#include "stores/mongo/mongo_rights.h"

namespace rlock::mongo {
namespace {

// A text of JavaScript.
std::string javascript_text(std::string_view text)
{
  std::string all = "\"";
  for (const char byte : text) {
    all += byte == '"' || byte == '\\' ? "\\" + std::string(1, byte) : std::string(1, byte);
  }
  return all + '"';
}

}  // namespace

// A collection of ShedLock is there, and so small that its locks need no index.
std::string rights_script(const ConnectionSpec& spec, std::string_view user)
{
  const std::string collection = javascript_text(spec.collection);
  const std::string role =
      javascript_text(spec.collection == default_collection ? "rlock" : "rlock_" + spec.collection);
  const std::string make = "db.createCollection(" + collection + ")\ndb.getCollection(" + collection +
                           ").createIndex({locked_by: 1}, {sparse: true})\n";
  return "db = db.getSiblingDB(" + javascript_text(spec.database) + ")\n" + (spec.is_shared ? "" : make) +
         "db.createRole({role: " + role + R"(, roles: [], privileges: [
  {resource: {db: db.getName(), collection: )" +
         collection + R"(}, actions: ["find", "insert", "update", "remove"]}]})
db.createUser({user: )" +
         javascript_text(user) + ", pwd: passwordPrompt(), roles: [" + role + "]})\n";
}

}  // namespace rlock::mongo
