// SPDX-License-Identifier: Apache-2.0
#include "stores/open.h"

#include "base/server_schemes.h"
#include "base/text.h"
#include "net/url_parts.h"
#include "redis/redis_store.h"
#include "redis/scan.h"
#include "stores/built_engines.h"
#include "stores/quorum/quorum_store.h"
#include "stores/redis_transport.h"

#include <algorithm>
#include <array>
#include <list>
#include <span>
#include <system_error>
#include <utility>

namespace rlock {

// core/CMakeLists.txt makes RLOCK_ENGINES: a ROW for each store of the build.
#define RLOCK_ROW(name)       \
  namespace name {            \
  extern const Engine engine; \
  }
RLOCK_ENGINES(RLOCK_ROW)
#undef RLOCK_ROW

namespace {

Result<std::unique_ptr<LockStore>> open_redis(const ServerSpec& server, const Endpoint& endpoint, const Clock& clock,
                                              StopToken stop)
{
  Endpoint master = endpoint;
  master.refuses_replica = !endpoint.has_group();
  ASSIGN_OR_RETURN(auto transport, open_transport(master, local_options(server, master), clock, stop));
  const auto check = endpoint.is_authenticated() ? RightsCheck::before_grant : RightsCheck::none;
  return std::unique_ptr<LockStore>(std::make_unique<RedisStore>(std::move(transport), clock, check));
}

constexpr std::array redis_forms{
    UrlForm{"redis://[user[:password]@]host[:port][/db]",
            "one server; host and host:port mean the same without redis://"},
    UrlForm{"rediss://...", "one server with TLS; its certificate must name that host"},
    UrlForm{"unix://[user[:password]@]/path[?db=N]", "one server, by its unix socket"},
    UrlForm{"redis+cluster://host:port,host:port", "a cluster, by some of its nodes; rediss+cluster:// with TLS"},
    UrlForm{"redis+sentinel://host:port,host:port/master[/db]",
            "the master of that name, which the sentinels know; rediss+sentinel:// with TLS"},
    UrlForm{"local:", "a private server that rlock starts for all processes of this user on this host"},
};

// It also gets the URLs without a scheme, or with an unknown one.
constexpr Engine redis_engine{.name = "redis",
                              .parse = parse_url,
                              .open = open_redis,
                              .title = "Redis",
                              .page = "redis",
                              .url_forms = redis_forms,
                              .password_variable = "REDISCLI_AUTH"};

#define RLOCK_ROW(name) &name::engine,
constexpr std::array engines{&redis_engine, RLOCK_ENGINES(RLOCK_ROW)};
#undef RLOCK_ROW

// A list, because rows must not move.
std::list<Engine>& added_engines()
{
  static std::list<Engine> rows;
  return rows;
}

std::string_view scheme_in(std::string_view url) { return url.substr(0, url.find(':')); }

// nullptr: rlock knows the scheme, and the engine is not built.
const Engine* engine_for(std::string_view scheme)
{
  for (const Engine& added : added_engines()) {
    if (added.name == scheme) {
      return &added;
    }
  }
  const ServerScheme* const known = find_scheme(scheme);
  const auto* const row =
      std::ranges::find(engines, known == nullptr ? redis_engine.name : known->engine, &Engine::name);
  return row == engines.end() ? nullptr : *row;
}

}  // namespace

std::span<const Engine* const> built_engines() { return engines; }

const Engine& engine_of(const Endpoint& endpoint)
{
  const Engine* const engine = engine_for(endpoint.scheme);
  return engine == nullptr ? redis_engine : *engine;  // no URL of an engine that is not built is an endpoint
}

const Engine* engine_beside(NativeFormat format)
{
  const auto* const row = std::ranges::find_if(
      engines, [&](const Engine* each) { return std::ranges::find(each->beside, format) != each->beside.end(); });
  return row == engines.end() ? nullptr : *row;
}

namespace {

Result<std::unique_ptr<LockStore>> open_quorum(const ServerSpec& server, const Clock& clock, StopToken stop)
{
  std::vector<QuorumServer> servers;
  for (const Endpoint& endpoint : server.endpoints) {
    ASSIGN_OR_RETURN(auto store, engine_of(endpoint).open(server, endpoint, clock, stop));
    LockStore* const member = store.get();
    if (!member->traits().can_join_quorum) {
      return Error{ErrorCode::config, endpoint.shown() + " cannot be one of several servers (give it alone)"};
    }
    servers.push_back({.shown = endpoint.shown(), .store = std::move(store), .marker = nullptr});
    if (server.restart_guard) {
      servers.back().marker = [member](const MarkerNews& news, const CallLimits& limit) {
        return member->marker(news, limit);
      };
    }
  }
  const QuorumPolicy policy{.rule = server.quorum, .restart_guard = server.restart_guard_for};
  try {
    return std::unique_ptr<LockStore>(
        std::make_unique<QuorumStore>(std::move(servers), policy, clock, std::make_unique<SystemRng>()));
  } catch (const std::system_error& refused) {
    return Error{ErrorCode::os, "cannot start a thread for each of several servers: " + refused.code().message()};
  }
}

}  // namespace

std::string ServerSpec::shown() const
{
  return joined(endpoints, " ", [](const Endpoint& endpoint) { return endpoint.shown(); });
}

JobServer ServerSpec::for_job() const
{
  std::string urls = joined(endpoints, " ", [](const Endpoint& endpoint) { return endpoint.without_passwords(); });
  return {.urls = std::move(urls), .password_file = password_file};
}

void add_engine(const Engine& engine) { added_engines().push_back(engine); }

Result<Endpoint> parse_server(std::string_view url)
{
  const Engine* const engine = engine_for(scheme_in(url));
  if (engine == nullptr) {
    return Error{ErrorCode::config, quotable_url(url) + ": this rlock was built without " +
                                        std::string(find_scheme(scheme_in(url))->engine) + " (" +
                                        std::string(stores_option) + ")"};
  }
  return engine->parse(url);
}

const Engine* engine_named(std::string_view word)
{
  constexpr std::array<std::string_view, 6> of_redis{"cluster", "local", "quorum", "sentinel", "unix", "valkey"};
  const ServerScheme* const scheme = find_scheme(word);
  const std::string_view name = scheme != nullptr                                     ? scheme->engine
                                : std::ranges::find(of_redis, word) != of_redis.end() ? redis_engine.name
                                                                                      : word;
  const auto* const row =
      std::ranges::find_if(engines, [&](const Engine* each) { return each->name == name || each->page == name; });
  return row == engines.end() ? nullptr : *row;
}

std::vector<std::string> url_beginnings()
{
  std::vector<std::string> all{"local:", "unix://"};
  for (const ServerScheme& scheme : server_schemes) {
    if (engine_for(scheme.name) != nullptr) {
      all.push_back(std::string(scheme.name) + "://");
    }
  }
  return all;
}

bool may_have_password(std::string_view url)
{
  const Result<Endpoint> endpoint = parse_server(url);
  return endpoint ? !endpoint->password.empty() || !endpoint->sentinels.password.empty() : hides_password(url);
}

Result<std::unique_ptr<LockStore>> open_store(const ServerSpec& server, const Clock& clock, StopToken stop)
{
  if (server.endpoints.size() > 1) {
    return open_quorum(server, clock, stop);
  }
  const Endpoint& only = server.endpoints.front();
  return engine_of(only).open(server, only, clock, stop);
}

LocalServerOptions local_options(const ServerSpec& server, const Endpoint& endpoint)
{
  return {.timeout = server.timeout,
          .runtime_directory = server.runtime_directory,
          .name = server.local_name,
          .idle = server.local_idle,
          .any_lock = endpoint.is_private() ? any_lock_script() : "",
          .starts = server.starts_local};
}

}  // namespace rlock
