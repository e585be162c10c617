// SPDX-License-Identifier: Apache-2.0
#include "support/s3_fixture.h"

#include "stores/s3/libcurl.h"
#include "stores/s3/s3_access.h"
#include "stores/s3/s3_backend.h"
#include "support/limits.h"
#include "support/paths.h"
#include "support/skip.h"
#include "support/sockets.h"
#include "support/wait_until.h"

#include <algorithm>
#include <csignal>
#include <cstdlib>

#include <doctest/doctest.h>

namespace rlock::test {
namespace {

constexpr const char* access = "test:secret@";  // moto takes any

s3::ConnectionSpec spec_at(const std::string& url)
{
  const auto endpoint = s3::parse_s3_url(url);
  REQUIRE_MESSAGE(endpoint, endpoint.error().text);
  return s3::connection_spec(*endpoint);
}

s3::Answer ask(const std::string& url, const s3::Request& request)
{
  const BootClock clock;
  s3::Connection connection(spec_at(url), clock);
  return must(connection.ask(request, soon()));
}

}  // namespace

bool has_s3()
{
  static const bool has_moto =
      std::system("python3 -c 'import moto.server' >/dev/null 2>&1") == 0;  // NOLINT(*-mt-unsafe,cert-env33-c)
  return has_moto && s3::libcurl();
}

S3Server::S3Server() : DatabaseServer("s3", ""), m_port(free_port())
{
  skip_if(!has_s3(), "no store of objects (pip install 'moto[s3,server]', and libcurl)");
  S3Server::start();
}

void S3Server::start()
{
  start_process({"python3", std::string(RLOCK_SOURCE_DIR) + "/tests/moto/serve.py", std::to_string(m_port)});
  wait_until(
      [&] {
        REQUIRE_MESSAGE(is_running(), log());
        const BootClock clock;
        s3::Connection connection(spec_at(url()), clock);
        return static_cast<bool>(connection.ask({.method = s3::Request::Method::put, .key = ""}, soon()));
      },
      "the store of objects makes a bucket");
}

std::string S3Server::url(const std::string& place, const std::string& parameters) const
{
  return "s3://" + std::string(access) + place + "?endpoint=http://127.0.0.1:" + std::to_string(m_port) +
         (parameters.empty() ? "" : "&") + parameters;
}

std::unique_ptr<record::Backend> S3Server::open_backend(const Clock& clock) const
{
  return s3::open_backend(spec_at(url()), clock, std::make_unique<SystemRng>());
}

std::vector<std::string> S3Server::lock_names() const
{
  const BootClock clock;
  s3::Connection connection(spec_at(url()), clock);
  auto names = must(s3::lock_names(connection, soon()));
  std::ranges::sort(names);
  return names;
}

void S3Server::delete_locks() const
{
  for (const std::string& name : lock_names()) {
    ask(url(), {.method = s3::Request::Method::remove, .key = s3::key_of_lock(name)});
  }
}

void S3Server::end_connections() { skip("moto ends no connections"); }

void S3Server::kill() { skip("moto keeps its objects in memory"); }

void S3Server::lose_next_answer() const { signal_server(SIGUSR1); }

void S3Server::ignore_conditions() const { signal_server(SIGUSR2); }

void S3Server::put(const std::string& key, const std::string& bytes) const
{
  s3::Request request{.method = s3::Request::Method::put, .key = key};
  request.body = bytes;
  ask(url(), request);
}

}  // namespace rlock::test
