// SPDX-License-Identifier: Apache-2.0
// What the user of the tests has set, and the terminal on which they are run, change no test.

#include <cstdlib>
#include "support/integration.h"

using namespace rlock::test;

namespace {

// Sets variables of this process, and restores them.
class Settings {
 public:
  explicit Settings(const std::map<std::string, std::string>& wanted)
  {
    for (const auto& [name, value] : wanted) {
      const char* before = std::getenv(name.c_str());
      m_before[name] = before == nullptr ? std::nullopt : std::optional<std::string>(before);
      ::setenv(name.c_str(), value.c_str(), 1);
    }
  }
  ~Settings()
  {
    for (const auto& [name, value] : m_before) {
      value ? ::setenv(name.c_str(), value->c_str(), 1) : ::unsetenv(name.c_str());
    }
  }
  Settings(const Settings&) = delete;
  Settings& operator=(const Settings&) = delete;

 private:
  std::map<std::string, std::optional<std::string>> m_before;
};

}  // namespace

TEST_CASE("clean environment: a process of a test has a terminal with colors, and no setting of the user")
{
  const Settings settings({{"TERM", "dumb"},
                           {"NO_COLOR", "1"},
                           {"SHELL", "/bin/false"},
                           {"LC_ALL", "xx_XX"},
                           {"LANG", "xx_XX"},
                           {"http_proxy", "http://127.0.0.1:1"},
                           {"HTTPS_PROXY", "http://127.0.0.1:1"},
                           {"RLOCK_SERVER", "redis://127.0.0.1:1"},
                           {"REDIS_URL", "redis://127.0.0.1:1"}});
  Process process({"sh", "-c",
                   "echo $TERM; echo ${NO_COLOR+a}${SHELL+b}${LC_ALL+c}${LANG+d}${http_proxy+e}${HTTPS_PROXY+f}; "
                   "echo ${RLOCK_SERVER+g}${REDIS_URL+h}"});
  expect_end(process, success, {out_is("xterm\n\n\n")});
}
