// SPDX-License-Identifier: Apache-2.0
// What an engine is: a row says all that the URLs of a kind of server mean. The row of an engine stands in its folder,
// NAME/NAME_engine.cpp; that of Redis in stores/open.cpp.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include "base/clock.h"
#include "base/result.h"
#include "base/stop.h"
#include "engine/record_store.h"
#include "lock/lock_kind.h"
#include "lock/store.h"
#include "net/endpoint.h"

namespace rlock {

struct ServerSpec;  // stores/open.h

// A form of the URL of a server, for help.
struct UrlForm {
  std::string_view url;
  std::string_view meaning;
};

struct Engine {
  std::string_view name;  // that of its folder, in -DRLOCK_STORES, and ServerScheme::engine of its URLs
  Result<Endpoint> (*parse)(std::string_view url);
  Result<std::unique_ptr<LockStore>> (*open)(const ServerSpec& server, const Endpoint& endpoint, const Clock& clock,
                                             StopToken stop);
  std::string_view title = {};  // of the server, for people
  std::string_view page = {};   // its manual page is rlock-PAGE(7), which rlock help PAGE shows
  std::span<const UrlForm> url_forms = {};
  // What the engine refuses, and what to do instead; empty: it refuses nothing, or only when it is asked.
  std::string_view refuses_sync = {};       // --sync
  std::string_view refuses_quorum = {};     // to be one of several servers
  std::string_view refuses_tls_files = {};  // --cacert, --cert, --tls-key
  // The environment variable in which the server's own tools read a password; empty: none.
  std::string_view password_variable = {};
  std::array<NativeFormat, 2> beside = {};  // whose clients its locks may stand beside
  std::string_view beside_help = {};        // what --format says of them
  // What an administrator feeds to the server's own tool, so that `user` may keep locks there. `globs`: locks that stand beside
  // native clients. nullptr: the rights are ACL rules of Redis.
  Result<std::string> (*rights)(const Endpoint& endpoint, std::string_view user,
                                std::span<const std::string> globs) = nullptr;
  bool rights_have_globs = false;                          // else `rights` takes none
  std::span<const std::string_view> rights_examples = {};  // of `rlock acl`
};

// Engine::open of a store that keeps records. `spec_of(endpoint)`: what the URL says; `open_backend(spec, clock, rng)`: its Backend.
template <auto spec_of, auto open_backend>
Result<std::unique_ptr<LockStore>> open_records(const ServerSpec&, const Endpoint& endpoint, const Clock& clock,
                                                StopToken)
{
  return record::store_on(open_backend(spec_of(endpoint), clock, std::make_unique<SystemRng>()), clock);
}

}  // namespace rlock
