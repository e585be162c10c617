// SPDX-License-Identifier: Apache-2.0
#include "support/certificates.h"

#include "support/process.h"
#include "support/skip.h"
#include "support/temp_dir.h"

namespace rlock::test {
namespace {

void make(const std::string& text, const std::vector<std::string>& words)
{
  const std::string options = "new='-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes'; set -e; ";
  std::vector<std::string> argv{"sh", "-c", options + text, "sh"};
  argv.insert(argv.end(), words.begin(), words.end());
  Process openssl(argv);
  const Exit exit = openssl.wait(std::chrono::seconds(30));
  if (exit == Exit{127}) {
    skip("no openssl in PATH");
  }
  REQUIRE_MESSAGE(exit == Exit{0}, openssl.err());
}

Certificate files_in(const std::string& dir) { return {.file = dir + "/crt", .key = dir + "/key"}; }

}  // namespace

Authority::Authority() : m_own(files_in(make_temp_dir("ca")))
{
  make("openssl req -x509 $new -subj /CN=tests -days 2 -out \"$1\" -keyout \"$2\"", {m_own.file, m_own.key});
}

Certificate Authority::sign(const std::string& names, int days) const
{
  const std::string dir = make_temp_dir("cert");
  // For days in the past new versions of openssl need the dates, and old versions do not know that option.
  make(
      "cd \"$1\"; openssl req -new $new -subj /CN=test -keyout key -out csr; echo subjectAltName=$4 > ext; "
      "sign() { openssl x509 -req -in csr -CA \"$ca\" -CAkey \"$ca_key\" -set_serial $$ \"$@\" -extfile ext -out crt; "
      "}; "
      "ca=$2 ca_key=$3; sign -days $5 || sign -not_before 20200101000000Z -not_after 20200102000000Z",
      {dir, m_own.file, m_own.key, names, std::to_string(days)});
  return files_in(dir);
}

}  // namespace rlock::test
