// SPDX-License-Identifier: Apache-2.0
#include "cli/server.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <iterator>
#include <sstream>
#include <system_error>

#include <unistd.h>

namespace rlock::cli {
namespace {

constexpr DurationRule timeout_rule{"--server-timeout", Millis{1}, std::chrono::hours{24}, "5s"};
constexpr Millis quorum_timeout{500};  // a server that is slow shall not cost much: the others may be enough
constexpr std::array quorum_choices{Choice<QuorumRule>{"majority", QuorumRule::majority},
                                    Choice<QuorumRule>{"all", QuorumRule::all}};
constexpr std::string_view default_url = "redis://127.0.0.1:6379";

// The error says where the URL stands, for a bad one in the environment is hard to find otherwise.
Result<Endpoint> endpoint_from(std::string_view url, const std::string& source, Fault fault)
{
  Result<Endpoint> endpoint = parse_url(url);
  if (!endpoint) {
    return Error{fault, source + ": " + endpoint.error().text};
  }
  return endpoint;
}

bool is_same_server(const Endpoint& one, const Endpoint& other)
{
  return one.kind == other.kind &&
         (one.kind == Endpoint::Kind::unix_socket ? one.path == other.path
                                                  : one.host == other.host && one.port == other.port);
}

// Independent masters, each of which has one vote.
Result<Done> can_be_a_quorum(const std::vector<Endpoint>& endpoints, const std::string& source, Fault fault)
{
  for (auto one = endpoints.begin(); one != endpoints.end() && endpoints.size() > 1; ++one) {
    if (one->kind == Endpoint::Kind::local) {
      return Error{fault, source + ": local: is one server for one host and no part of a quorum (give redis:// or "
                                   "unix:// URLs)"};
    }
    const auto same = std::find_if(std::next(one), endpoints.end(),
                                   [&](const Endpoint& other) { return is_same_server(*one, other); });
    if (same != endpoints.end()) {
      return Error{fault, source + ": " + one->shown() + " and " + same->shown() +
                              " are the same server, which cannot vote twice"};
    }
  }
  return Done{};
}

Result<std::vector<Endpoint>> endpoints_from(const std::vector<std::string>& urls, const std::string& source,
                                             Fault fault)
{
  std::vector<Endpoint> endpoints;
  for (const std::string& url : urls) {
    auto endpoint = endpoint_from(url, source, fault);
    if (!endpoint) {
      return endpoint.error();
    }
    endpoints.push_back(*std::move(endpoint));
  }
  const auto fit = can_be_a_quorum(endpoints, source, fault);
  return fit ? Result(std::move(endpoints)) : Result<std::vector<Endpoint>>(fit.error());
}

std::vector<std::string> words_of(std::string_view text)
{
  std::istringstream stream{std::string(text)};
  return {std::istream_iterator<std::string>(stream), {}};
}

Result<std::vector<Endpoint>> meant_endpoints(const TypedServer& typed, const Environment& environment)
{
  if (!typed.urls.empty()) {
    return endpoints_from(typed.urls, "--server", Fault::usage);
  }
  for (const char* name : {"RLOCK_SERVER", "REDIS_URL"}) {
    const auto urls = words_of(environment.value(name));
    if (!urls.empty()) {
      return endpoints_from(urls, name, Fault::config);
    }
  }
  return endpoints_from({std::string(default_url)}, "--server", Fault::internal);
}

Error unreadable(const std::string& path, const std::string& why)
{
  return {Fault::config,
          "--password-file: cannot read a password from " + printable(path) + ": " + why};
}

using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

Result<std::string> first_line_of(const std::string& path)
{
  const File file(std::fopen(path.c_str(), "re"), std::fclose);
  if (!file) {
    return unreadable(path, std::generic_category().message(errno));
  }
  std::string line;
  for (int c = std::fgetc(file.get()); c != EOF && c != '\n'; c = std::fgetc(file.get())) {
    line += static_cast<char>(c);
  }
  if (std::ferror(file.get()) != 0) {
    return unreadable(path, std::generic_category().message(errno));
  }
  if (line.ends_with('\r')) {
    line.pop_back();
  }
  if (line.empty()) {
    return unreadable(path, "its first line is empty");
  }
  return line;
}

Result<std::string> meant_password(const TypedServer& typed, const Environment& environment)
{
  if (typed.password_file) {
    return first_line_of(*typed.password_file);
  }
  const std::string_view ours = environment.value("RLOCK_PASSWORD");
  return std::string(ours.empty() ? environment.value("REDISCLI_AUTH") : ours);
}

// RLOCK_SERVER as a job and a script find it has no password; the URLs that it was taken from may.
void borrow_password(Endpoint& endpoint, const Environment& environment)
{
  for (const std::string& url : words_of(environment.value("REDIS_URL"))) {
    const Result<Endpoint> known = parse_url(url);
    if (known && known->shown() == endpoint.shown()) {
      endpoint.password = known->password;
      endpoint.user = endpoint.user.empty() ? known->user : endpoint.user;
    }
  }
}

// Of those without one in their URL. The private server is guarded by its directory and has none.
Result<Done> mean_passwords(const TypedServer& typed, const Environment& environment, ServerSpec& server)
{
  for (Endpoint& endpoint : server.endpoints) {
    if (!endpoint.password.empty() || endpoint.kind == Endpoint::Kind::local) {
      continue;
    }
    Result<std::string> password = meant_password(typed, environment);
    if (!password) {
      return password.error();
    }
    endpoint.password = *std::move(password);
    if (endpoint.password.empty()) {
      borrow_password(endpoint, environment);
    }
  }
  return Done{};
}

std::string typed_or(const Text& typed, const Environment& environment, std::string_view name)
{
  return typed ? *typed : std::string(environment.value(name));
}

// What was typed for TLS must not be without effect; the environment is for all servers, the plain ones too.
Result<Done> mean_tls(const TypedServer& typed, const Environment& environment, ServerSpec& server)
{
  if (typed.tls_key && !typed.cert) {
    return usage("--tls-key: the certificate is missing (try --cert FILE --tls-key FILE)");
  }
  bool used = false;
  for (Endpoint& endpoint : server.endpoints) {
    if (endpoint.tls) {
      endpoint.tls->authorities = typed_or(typed.cacert, environment, "RLOCK_CACERT");
      endpoint.tls->certificate = typed_or(typed.cert, environment, "RLOCK_CERT");
      endpoint.tls->key = typed.cert ? typed.tls_key.value_or("") : std::string(environment.value("RLOCK_TLS_KEY"));
      used = true;
    }
  }
  if ((typed.cacert || typed.cert) && !used) {
    return usage((typed.cacert ? "--cacert" : "--cert") + std::string(": ") + server.endpoints.front().shown() +
                 " is a server without TLS (try -S rediss://host:6379)");
  }
  return Done{};
}

Result<Done> mean_quorum(const TypedServer& typed, const Environment&, ServerSpec& server)
{
  server.restart_guard = !typed.no_restart_guard;
  if (!typed.quorum) {
    return Done{};
  }
  const Result<QuorumRule> rule = meant_choice(*typed.quorum, "--quorum", quorum_choices);
  if (!rule) {
    return rule.error();
  }
  if (server.endpoints.size() == 1) {
    return usage("--quorum is for several servers (try -S redis://a -S redis://b -S redis://c)");
  }
  server.quorum = *rule;
  return Done{};
}

}  // namespace

void describe_server(CLI::App& app, TypedServer& typed)
{
  constexpr const char* group = "Server";
  add_texts(app, "-S,--server", typed.urls, "URL",
            "redis://[user[:password]@]host[:port][/db], rediss:// (TLS), unix:///path or local: "
            "(else RLOCK_SERVER, REDIS_URL, redis://127.0.0.1:6379); given several times: independent "
            "servers, of which a quorum has to grant the lock")
      ->group(group);
  add_text(app, "--server-timeout", typed.timeout, "DUR",
           "for connecting and for every answer (5s; of several servers 500ms each)")
      ->group(group);
  add_text(app, "--quorum", typed.quorum, "majority|all",
           "how many of several servers have to grant it; permits may need more than a majority (majority)")
      ->group(group);
  add_flag(app, "--no-restart-guard", typed.no_restart_guard,
           "of several servers: count also those that were started less than a ttl, or 30s, ago: they keep "
           "their data when they are restarted")
      ->group(group);
  add_text(app, "--password-file", typed.password_file, "FILE",
           "its first line is the password (else RLOCK_PASSWORD, REDISCLI_AUTH)")
      ->group(group);
  add_text(app, "--cacert", typed.cacert, "FILE",
           "whose signature makes a server's certificate good (else RLOCK_CACERT, the system's)")
      ->group(group);
  add_text(app, "--cert", typed.cert, "FILE", "our own certificate (else RLOCK_CERT, none)")->group(group);
  add_text(app, "--tls-key", typed.tls_key, "FILE",
           "its key (else RLOCK_TLS_KEY, in the same file)")
      ->group(group);
}

Result<ServerSpec> meant_server(const TypedServer& typed, const Environment& environment)
{
  Result<std::vector<Endpoint>> endpoints = meant_endpoints(typed, environment);
  if (!endpoints) {
    return endpoints.error();
  }
  ServerSpec server;
  server.endpoints = *std::move(endpoints);
  server.timeout = server.endpoints.size() > 1 ? quorum_timeout : server.timeout;
  if (typed.timeout) {
    const Result<Millis> timeout = meant_duration(*typed.timeout, timeout_rule);
    if (!timeout) {
      return timeout.error();
    }
    server.timeout = *timeout;
  }
  for (const auto mean : {mean_quorum, mean_tls, mean_passwords}) {
    const Result<Done> meant = mean(typed, environment, server);
    if (!meant) {
      return meant.error();
    }
  }
  server.runtime_directory = environment.value("XDG_RUNTIME_DIR");
  return server;
}

Result<OpenedStore> open_typed(const TypedServer& typed, const Environment& environment)
{
  const Result<ServerSpec> server = meant_server(typed, environment);
  if (!server) {
    return server.error();
  }
  auto clock = std::make_unique<BootClock>();
  Result<std::unique_ptr<LockStore>> store = open_store(*server, *clock, Stop::never());
  if (!store) {
    return store.error();
  }
  return OpenedStore{std::move(clock), *std::move(store), server->timeout};
}

}  // namespace rlock::cli
