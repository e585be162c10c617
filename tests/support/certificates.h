// SPDX-License-Identifier: Apache-2.0
// A certificate authority for one test case, made with openssl(1); where there is none the case is skipped.
#pragma once

#include <string>

namespace rlock::test {

struct Certificate {  // PEM files
  std::string file;
  std::string key;
};

class Authority {
 public:
  Authority();

  [[nodiscard]] const std::string& file() const { return m_own.file; }  // what --cacert takes
  // `names` as "DNS:localhost,IP:127.0.0.1"; days from now until it expires, and it may have expired.
  [[nodiscard]] Certificate sign(const std::string& names, int days = 2) const;

 private:
  Certificate m_own;
};

}  // namespace rlock::test
