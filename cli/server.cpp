// SPDX-License-Identifier: Apache-2.0
#include "cli/server.h"

#include <CLI/CLI.hpp>

#include <cerrno>
#include <cstdio>
#include <system_error>

#include <unistd.h>

namespace rlock::cli {
namespace {

constexpr DurationRule timeout_rule{"--server-timeout", Millis{1}, std::chrono::hours{24}, "5s"};
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

Result<Endpoint> meant_endpoint(const TypedServer& typed, const Environment& environment)
{
  if (typed.urls.size() > 1) {
    return usage("--server: given " + std::to_string(typed.urls.size()) +
                 " times, but this version takes one server");
  }
  if (!typed.urls.empty()) {
    return endpoint_from(typed.urls.front(), "--server", Fault::usage);
  }
  for (const char* name : {"RLOCK_SERVER", "REDIS_URL"}) {
    const std::string_view url = environment.value(name);
    if (!url.empty()) {
      return endpoint_from(url, name, Fault::config);
    }
  }
  return parse_url(default_url);
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

// RLOCK_SERVER as a job and a script find it has no password; the URL that it was taken from may.
void borrow_password(Endpoint& endpoint, const Environment& environment)
{
  const Result<Endpoint> known = parse_url(environment.value("REDIS_URL"));
  if (known && known->shown() == endpoint.shown()) {
    endpoint.password = known->password;
    endpoint.user = endpoint.user.empty() ? known->user : endpoint.user;
  }
}

std::string typed_or(const Text& typed, const Environment& environment, std::string_view name)
{
  return typed ? *typed : std::string(environment.value(name));
}

// What was typed for TLS must not be without effect; the environment is for all servers, the plain ones too.
Result<Done> mean_tls(const TypedServer& typed, const Environment& environment, Endpoint& endpoint)
{
  if (typed.tls_key && !typed.cert) {
    return usage("--tls-key: the certificate is missing (try --cert FILE --tls-key FILE)");
  }
  const bool any = typed.cacert || typed.cert;
  if (!endpoint.tls) {
    return any ? Result<Done>(usage((typed.cacert ? "--cacert" : "--cert") + std::string(": ") + endpoint.shown() +
                                    " is a server without TLS (try -S rediss://host:6379)"))
               : Done{};
  }
  endpoint.tls->authorities = typed_or(typed.cacert, environment, "RLOCK_CACERT");
  endpoint.tls->certificate = typed_or(typed.cert, environment, "RLOCK_CERT");
  endpoint.tls->key = typed.cert ? typed.tls_key.value_or("") : std::string(environment.value("RLOCK_TLS_KEY"));
  return Done{};
}

}  // namespace

void describe_server(CLI::App& app, TypedServer& typed)
{
  constexpr const char* group = "Server";
  add_texts(app, "-S,--server", typed.urls, "URL",
            "redis://[user[:password]@]host[:port][/db], rediss:// (TLS), unix:///path or local: "
            "(else RLOCK_SERVER, REDIS_URL, redis://127.0.0.1:6379)")
      ->group(group);
  add_text(app, "--server-timeout", typed.timeout, "DUR",
           "for connecting and for every answer (5s)")
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
  Result<Endpoint> endpoint = meant_endpoint(typed, environment);
  if (!endpoint) {
    return endpoint.error();
  }
  ServerSpec server;
  server.endpoint = *std::move(endpoint);
  if (const auto tls = mean_tls(typed, environment, server.endpoint); !tls) {
    return tls.error();
  }
  if (typed.timeout) {
    const Result<Millis> timeout = meant_duration(*typed.timeout, timeout_rule);
    if (!timeout) {
      return timeout.error();
    }
    server.timeout = *timeout;
  }
  // The private server is guarded by its directory and has no password.
  const bool local = server.endpoint.kind == Endpoint::Kind::local;
  if (server.endpoint.password.empty() && !local) {
    Result<std::string> password = meant_password(typed, environment);
    if (!password) {
      return password.error();
    }
    server.endpoint.password = *std::move(password);
  }
  if (server.endpoint.password.empty() && !local) {
    borrow_password(server.endpoint, environment);
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
