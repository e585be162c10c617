// SPDX-License-Identifier: Apache-2.0
// Who signs the requests: the user of the URL, or the AWS_ variables, or a profile in the files that the AWS tools share. Private to
// stores/s3.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include "base/result.h"
#include "stores/s3/s3_url.h"

namespace rlock::s3 {

struct Credentials {
  std::string access_key;
  std::string secret;
  std::string token;   // of a session; empty: none
  std::string region;  // never empty
  std::string source;  // "the AWS_ variables", for errors

  bool operator==(const Credentials&) const = default;
};

// Where they may stand: a variable of the environment, or the content of a file. Empty: there is none.
struct CredentialSources {
  std::function<std::string(const char* name)> variable;
  std::function<std::string(const std::string& path)> file;
};
CredentialSources sources_of_process();

// Read again for each new connection, and when a session is over. ErrorCode::refused: there are none; ErrorCode::config: a profile is not
// there, or has another kind of credentials.
Result<Credentials> find_credentials(const ConnectionSpec& spec, const CredentialSources& sources);

}  // namespace rlock::s3
