// SPDX-License-Identifier: Apache-2.0
// A certificate authority for one test case, made with openssl(1). Without openssl(1) the test case is skipped.
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

  [[nodiscard]] const std::string& file() const { return m_own.file; }  // the argument of --cacert
  // A certificate for `names`, such as "DNS:localhost,IP:127.0.0.1", that expires in `days`; a negative number: it has expired.
  [[nodiscard]] Certificate sign(const std::string& names, int days = 2) const;

 private:
  Certificate m_own;
};

}  // namespace rlock::test

#define AUTHORITY_CASE(title) CASE_WITH(rlock::test::Authority, authority, title)
