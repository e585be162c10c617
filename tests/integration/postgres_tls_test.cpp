// SPDX-License-Identifier: Apache-2.0
// PostgreSQL over TLS, with certificates that the test makes.
#include "support/certificates.h"
#include "support/integration.h"
#include "support/postgres_fixture.h"
#include "support/refusal.h"

using namespace rlock::test;

namespace {

std::vector<std::string> tls_settings(const Certificate& certificate, const std::string& rules)
{
  return {"ssl=on", "ssl_cert_file=" + file_for_postgres(text_of(certificate.file)),
          "ssl_key_file=" + file_for_postgres(text_of(certificate.key)),
          "hba_file=" + file_for_postgres("local all all trust\n" + rules)};
}

std::string ca(const Authority& authority) { return "sslrootcert=" + authority.file(); }

}  // namespace

AUTHORITY_CASE("postgres tls: a server with the right certificate is accepted, any other is 69, and no file is 78")
{
  const Authority other;
  const PostgresServer server(tls_settings(authority.sign("IP:127.0.0.1"), "hostssl all all 127.0.0.1/32 trust\n"),
                              true);
  const auto url = [&](const std::string& parameters) { return server.tcp_url("postgres", parameters); };
  check_granted(url("sslmode=verify-full&" + ca(authority)));
  check_refused(url("sslmode=verify-full&" + ca(other)), 69, "certificate verify failed");
  check_refused(url("sslmode=verify-ca&" + ca(other)), 69, "certificate verify failed");
  check_granted(url("sslmode=require"));
  check_refused(url("sslmode=disable"), 77, "no pg_hba.conf entry");
  check_refused(url("sslmode=verify-full&sslrootcert=/nowhere"), 78, "does not exist");
  const Finished doctor = run_rlock({"doctor", "-S", url("sslmode=require")});
  CHECK(has(doctor.out, "TLS"));
}

AUTHORITY_CASE("postgres tls: a certificate for another host is refused with 69, unless only the CA is asked for")
{
  const PostgresServer server(tls_settings(authority.sign("DNS:other.example"), "hostssl all all 127.0.0.1/32 trust\n"),
                              true);
  check_refused(server.tcp_url("postgres", "sslmode=verify-full&" + ca(authority)), 69, "does not match host name");
  check_granted(server.tcp_url("postgres", "sslmode=verify-ca&" + ca(authority)));
}

TEST_CASE("postgres tls: a server without TLS is refused with 69 where TLS is demanded")
{
  const PostgresServer server({}, true);
  check_refused(server.tcp_url("postgres", "sslmode=require"), 69, "server does not support SSL");
}

AUTHORITY_CASE("postgres tls: a server that wants a client certificate")
{
  const Authority other;
  auto settings = tls_settings(authority.sign("IP:127.0.0.1"), "hostssl all all 127.0.0.1/32 cert\n");
  settings.push_back("ssl_ca_file=" + file_for_postgres(text_of(authority.file())));
  const PostgresServer server(settings, true);
  CHECK(
      server.sql("create role test login; grant all on schema public to test").empty());  // the name in the certificate
  const Certificate accepted = authority.sign("DNS:us");
  const Certificate refused = other.sign("DNS:us");
  const auto url = [&](const std::string& user, const Certificate& certificate) {
    return server.tcp_url(
        user, "sslmode=verify-full&" + ca(authority) + "&sslcert=" + certificate.file + "&sslkey=" + certificate.key);
  };
  check_granted(url("test", accepted));
  check_refused(url("postgres", accepted), 77, "certificate authentication failed");
  check_refused(server.tcp_url("test", "sslmode=verify-full&" + ca(authority)), 77,
                "requires a valid client certificate");
  check_refused(url("test", refused), 77, "unknown ca");
}
