// SPDX-License-Identifier: Apache-2.0
// URLs of servers. The first line of the input, and what follows it, also stand around a password.
#include "cli/options/server.h"
#include "fuzz/fuzzer.h"
#include "fuzz/shown.h"
#include "net/url_parts.h"
#include "stores/open.h"

#include <array>

namespace rlock::test {
namespace {

// A text that is long enough not to stand in a URL by chance as well.
bool hides(std::string_view shown, const std::string& secret, std::string_view elsewhere)
{
  return secret.size() < 6 || elsewhere.find(secret) != std::string_view::npos ||
         shown.find(secret) == std::string_view::npos;
}

void promise_without_passwords(const Endpoint& endpoint, const std::string& shown)
{
  const std::string known = endpoint.host + endpoint.path + endpoint.sentinels.master;
  promise(hides(shown, endpoint.password, known) && hides(shown, endpoint.sentinels.password, known),
          "a URL that is shown has no password", shown);
}

void promise_hidden(const std::string& url, const std::string& secret)
{
  const auto endpoint = parse_server(url);
  const std::string shown = endpoint ? endpoint->shown() + endpoint->without_passwords() : endpoint.error().text;
  promise(shown.find(secret) == std::string::npos, "neither a URL that is shown nor an error has the password", shown);
  promise(quotable_url(url).find(secret) == std::string::npos, "a URL that is quoted has no password",
          quotable_url(url));
}

const std::array schemes{"redis", "rediss", "postgresql", "mysql",         "mariadb", "mongodb", "mongodb+srv",
                         "etcd",  "etcds",  "zookeeper",  "zookeeper+tls", "s3",      "unknown"};

// A URL with a password that no text has by chance: whatever is wrong with the URL, no error quotes the password.
void promise_error_without_password(std::string_view rest)
{
  const std::string secret = "S3cretValue";
  if (rest.find(secret) != std::string_view::npos) {
    return;
  }
  for (const std::string& url : {"redis+sentinel://h/m?sentinel_password=" + secret + std::string(rest),
                                 "redis+sentinel://h/m?sentinel_pasword=" + secret + std::string(rest),
                                 "host=h user=u password=" + secret + std::string(rest),
                                 "password = '" + std::string(rest) + " " + secret + "' host=h"}) {
    promise_hidden(url, secret);
  }
  for (const std::string scheme : schemes) {
    for (const char* before : {"", "x/", "x?", "12/", "12?", "12?a=", "x@y/"}) {
      promise_hidden(scheme + "://u:" + before + secret + "@" + std::string(rest), secret);
    }
    promise_hidden(scheme + "://u:" + secret + "/" + std::string(rest), secret);
    promise_hidden(scheme + "://h/db?password=x&password=" + secret + "&" + std::string(rest), secret);
  }
}

// Whatever stands in a password beside a text that no other part has, and whatever follows it.
void promise_hidden_between(std::string_view head, std::string_view tail)
{
  const std::string secret = "S3cretValue";
  const std::string before(head);
  const std::string after(tail);
  if (before.find(secret) != std::string::npos || after.find(secret) != std::string::npos) {
    return;
  }
  for (const std::string scheme : schemes) {
    for (const char* host : {"@h", "@h:1/db", "@[::1]/a?b=c", "@"}) {
      promise_hidden(scheme + "://u:" + before + secret + after + host, secret);
    }
  }
}

// A blank in the password of a variable ends a URL in the middle of the password.
void promise_variable_without_password(std::string_view rest)
{
  const std::string secret = "S3cretValue";
  if (rest.find(secret) != std::string_view::npos || rest.find('\0') != std::string_view::npos) {
    return;
  }
  for (const std::string& variable :
       {"redis://u:" + secret + " x@" + std::string(rest), "redis://u:x " + secret + "@" + std::string(rest)}) {
    const auto named = cli::resolve_endpoints({}, cli::Environment({"RLOCK_SERVER=" + variable}));
    promise(!named && named.error().text.find(secret) == std::string::npos, "no error has half of a password",
            named ? variable : named.error().text);
  }
}

}  // namespace

void fuzz_urls(std::string_view bytes)
{
  promise_error_without_password(bytes);
  Input parts(bytes);
  const std::string_view head = parts.line();
  promise_hidden_between(head, parts.rest());
  promise_variable_without_password(bytes);
  const auto endpoint = parse_server(bytes);
  if (!endpoint) {
    promise_error(endpoint.error());
    return;
  }
  const std::string shown = endpoint->shown();
  promise_one_line(shown);
  promise_without_passwords(*endpoint, shown);
  const auto again = parse_server(shown);
  promise(again && again->shown() == shown, "a URL that is shown can be read again", shown);
  promise(again->is_same_server(*endpoint), "and means the same server", shown);
}

}  // namespace rlock::test
