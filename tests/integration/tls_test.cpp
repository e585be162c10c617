// SPDX-License-Identifier: Apache-2.0
// rediss:// the same behaviour over TLS, and only the named server is trusted.
#include "support/certificates.h"
#include "support/integration.h"
#include "support/refusal.h"
#include "support/skip.h"

#include <netdb.h>

using namespace rlock::test;

namespace {

constexpr const char* here = "DNS:localhost,IP:127.0.0.1";

struct Secured {
  Authority authority;
  RedisServer server{{.tcp = true, .tls = authority.sign(here)}};

  [[nodiscard]] Words words(const std::string& verb, const Words& more) const
  {
    return joined({verb, "-S", server.tcp_url(), "--cacert", authority.file()}, more);
  }
  [[nodiscard]] std::int64_t exists(const std::string& key) const { return as_int(server.command({"EXISTS", key})); }
};

void run_a_job_on(const std::string& host)
{
  const Secured secured;
  const std::string url = "rediss://" + host + ":" + std::to_string(secured.server.port());
  const Words rest{"-k", "k", "--", "sh", "-c", "echo $RLOCK_SERVER"};
  expect_end(run_rlock(joined({"run", "-S", url, "--cacert", secured.authority.file()}, rest)), 0,
             {out_is(url + "\n")});
  const Finished inherited = run_rlock(
      joined({"run"}, rest), {.env = {{"RLOCK_SERVER", url + "/2"}, {"RLOCK_CACERT", secured.authority.file()}}});
  expect_end(inherited, 0, {out_is(url + "/2\n")});
}

bool resolves(const char* host)
{
  addrinfo* found = nullptr;
  const bool resolved = ::getaddrinfo(host, nullptr, nullptr, &found) == 0;
  if (resolved) {
    ::freeaddrinfo(found);
  }
  return resolved;
}

}  // namespace

TEST_CASE("tls: a job runs on a server that is named by its address") { run_a_job_on("127.0.0.1"); }

TEST_CASE("tls: a job runs on a server that is named by its host")
{
  skip_if(!resolves("localhost"), "this machine does not know the name localhost");
  run_a_job_on("localhost");
}

AUTHORITY_CASE("tls: a server whose certificate is no good")
{
  const Authority other;
  struct Row {
    Certificate certificate;
    const Authority& trusted;
    const char* says;
  };
  const Row rows[] = {
      {authority.sign(here, -1), authority, " has expired "},
      {authority.sign("DNS:other.example,IP:127.0.0.2"), authority, " is not for '127.0.0.1' "},
      {authority.sign(here), other, " is not signed by a trusted CA "},
  };
  for (const Row& row : rows) {
    const RedisServer server({.tcp = true, .tls = row.certificate});
    check_refused(server.tcp_url(), 69, row.says, {"--cacert", row.trusted.file()});
    CHECK(as_int(server.command({"DBSIZE"})) == 0);
  }
  const RedisServer server({.tcp = true, .tls = authority.sign(here)});
  check_refused(server.tcp_url(), 69, " is not signed by a trusted CA ");
}

TEST_CASE("tls: one side speaks it, the other does not")
{
  const Secured secured;
  const RedisServer plain({.tcp = true});
  check_refused("rediss://127.0.0.1:" + std::to_string(plain.port()), 69, "(if it speaks no TLS: redis://)",
                {"--server-timeout", "500ms"});
  const std::string port = std::to_string(secured.server.port());
  check_refused("redis://127.0.0.1:" + port, 69, "(if it speaks TLS: rediss://)");
  check_refused("redis://:pw@127.0.0.1:" + port, 69, "(if it speaks TLS: rediss://)");
}

AUTHORITY_CASE("tls: a server that wants a client certificate")
{
  const Authority other;
  const RedisServer server({.tcp = true, .tls = authority.sign(here), .client_ca = authority.file()});
  const Certificate accepted = authority.sign("DNS:us");
  const Certificate refused = other.sign("DNS:us");
  const std::string url = server.tcp_url();
  const auto with = [&](const Certificate& certificate) {
    return Words{"--cacert", authority.file(), "--cert", certificate.file, "--tls-key", certificate.key};
  };
  check_refused(url, 77, " wants a client certificate (give --cert and --tls-key)", {"--cacert", authority.file()});
  check_refused(url, 77, " does not accept the client certificate: ", with(refused));
  CHECK(run_job_at(url, with(accepted)).code == 0);

  const std::filesystem::path both = make_temp_dir("both") / "pem";
  std::ofstream(both) << text_of(accepted.file) << text_of(accepted.key);
  const Finished one_file = run_rlock(joined({"run", "-S", server.tcp_url()}, {"-k", "k", "--", "true"}),
                                      {.env = {{"RLOCK_CACERT", authority.file()}, {"RLOCK_CERT", both}}});
  CHECK_MESSAGE(one_file.code == 0, one_file.err);
}

TEST_CASE("tls: files that are no good are named with their option")
{
  const Secured secured;
  const std::string url = secured.server.tcp_url();
  const Certificate one = secured.authority.sign("DNS:one");
  const Certificate two = secured.authority.sign("DNS:two");
  check_refused(url, 78, "--cacert: cannot use /nonexistent/x: ", {"--cacert", "/nonexistent/x"});
  check_refused(url, 78, "--cacert: cannot use " + one.key, {"--cacert", one.key});
  check_refused(url, 78, "--cert: cannot use " + one.key, {"--cert", one.key});
  check_refused(url, 78, "--tls-key: cannot use " + two.key, {"--cert", one.file, "--tls-key", two.key});
  check_refused(url, 64, "--tls-key needs --cert", {"--tls-key", one.key});
  check_refused(secured.server.url(), 64, " is a server without TLS ", {"--cacert", one.file});
}

TEST_CASE("tls: renewed, waited for and taken by force as without")
{
  const Secured secured;
  const std::filesystem::path dir = make_temp_dir("turns");
  const std::string gate = "until test -e " + (dir / "go").string() + "; do sleep 0.01; done";
  Process first = start_rlock(secured.words("run", {"-k", "k", "--ttl", "2s", "--", "sh", "-c", gate}));
  wait_until([&] { return secured.exists("k") == 1; }, "it is held");
  std::vector<Process> waiters;
  for (int i = 0; i < 5; ++i) {
    waiters.push_back(start_rlock(secured.words(
        "run", {"-k", "k", "--", "sh", "-c", "echo " + std::to_string(i) + " >> " + (dir / "order").string()})));
    wait_until([&] { return as_int(secured.server.command({"ZCARD", "rlock:queue:{k}"})) == i + 1; }, "it waits");
  }
  const auto renewed = [&] { return as_int(secured.server.command({"PTTL", "k"})); };
  for (int times = 0; times < 3; ++times) {
    wait_until([&] { return renewed() < 1700; }, "time passes");
    wait_until([&] { return renewed() > 1700; }, "it is renewed");
  }
  const Instant start = BootClock().now();
  std::ofstream(dir / "go").close();
  CHECK(first.wait() == Exit{0});
  expect_ends(waiters);
  CHECK(BootClock().now() - start < 8s);  // the first look without a message comes after look_again_after
  CHECK(text_of(dir / "order") == "0\n1\n2\n3\n4\n");

  Process held = start_rlock(secured.words("run", {"-k", "k", "--", "sleep", "60"}));
  wait_until(
      [&] {
        return as_int(secured.server.command({"PUBSUB", "NUMPAT"})) == 0 && secured.exists("k") == 1 &&
               as_texts(secured.server.command({"PUBSUB", "CHANNELS", "rlock:owner:{k}:*"})).size() == 1;
      },
      "it is held, and its watchdog listens");
  const Finished forced = run_rlock(secured.words("force-unlock", {"-k", "k", "--yes"}));
  CHECK_MESSAGE(forced.code == 0, forced.err);
  CHECK(held.wait() == Exit{121});
}

TEST_CASE("tls: OpenSSL is loaded for it alone, and missed only there")
{
  const Secured secured;
  const auto maps_while_holding = [&](const Words& words) {
    Process rlock = start_rlock(joined(words, {"-k", "k", "--", "sleep", "60"}));
    wait_until([&] { return secured.exists("k") == 1; }, "it is held");
    const std::string maps = text_of("/proc/" + std::to_string(rlock.pid()) + "/maps");
    rlock.signal(SIGTERM);
    rlock.wait();
    return maps;
  };
  CHECK(has(maps_while_holding(secured.words("run", {})), "libssl"));
  CHECK_FALSE(has(maps_while_holding({"run", "-S", secured.server.url()}), "libssl"));

  const std::filesystem::path dir = make_temp_dir("lib");
  std::ofstream(dir / "libssl.so.3").close();  // found first, and not usable
  expect_end(run_rlock(secured.words("run", {"-k", "k", "--", "true"}), {.env = {{"LD_LIBRARY_PATH", dir}}}), 78,
             {err_has("cannot load libssl.so.")});
  CHECK(rlock_on(secured.server, {"run", "-k", "k", "--", "true"}, {.env = {{"LD_LIBRARY_PATH", dir}}}).code == 0);
}
