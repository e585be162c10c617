// SPDX-License-Identifier: Apache-2.0
// The URL of a MongoDB server or replica set: as libmongoc reads it, and `collection=NAME` or `table=NAME` besides.
#pragma once

#include <string>
#include <string_view>
#include "base/result.h"
#include "net/endpoint.h"

namespace rlock::mongo {

inline constexpr std::string_view scheme = "mongodb";
inline constexpr std::string_view srv_scheme = "mongodb+srv";

inline constexpr std::string_view default_database = "rlock";
inline constexpr std::string_view default_collection = "rlock_lock";

struct ConnectionSpec {
  std::string url;  // without user, password, collection and table
  std::string user;
  std::string password;
  std::string database{default_database};
  std::string collection{default_collection};
  bool is_shared = false;  // the collection is ShedLock's (`table`)
  bool uses_tls = false;
  bool is_this_host = false;  // no host of the URL is another one
};

// Takes user, password and collection out of the URL, and lets libmongoc check the rest. Errors: ErrorCode::usage: the URL is
// invalid or has an unknown parameter; ErrorCode::config: there is no libmongoc.
Result<Endpoint> parse_mongo_url(std::string_view url);

ConnectionSpec connection_spec(const Endpoint& endpoint);

// The URL with some user and password in it, if the server has a user: libmongoc refuses some parameters without one, and takes the
// right user and password afterwards.
std::string url_for_libmongoc(const std::string& url, bool has_user);

}  // namespace rlock::mongo
