// SPDX-License-Identifier: Apache-2.0
#include "run/identity.h"

#include <array>
#include <cstdlib>

#include <pwd.h>
#include <unistd.h>

namespace rlock {

std::string host_name()
{
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown";
}

// A look-up in the user database costs more than everything else at the start, so root is not looked up.
std::string user_name()
{
  const uid_t uid = ::geteuid();
  if (uid == 0) {
    return "root";
  }
  std::array<char, 4096> buffer{};
  passwd entry{};
  passwd* found = nullptr;
  ::getpwuid_r(uid, &entry, buffer.data(), buffer.size(), &found);
  return found != nullptr ? found->pw_name : std::to_string(uid);
}

std::string own_identity() { return user_name() + "@" + host_name() + " (pid " + std::to_string(::getpid()) + ")"; }

}  // namespace rlock
