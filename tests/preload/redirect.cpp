// SPDX-License-Identifier: Apache-2.0
// Loaded into rlock with LD_PRELOAD: a connection to a port of 127.0.0.1 goes to another port, so a proxy can stand
// between rlock and servers that announce their own ports. RLOCK_TEST_REDIRECT has the pairs: "6379=7000 6380=7001".
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace {

long redirected(long port)
{
  const char* pairs = std::getenv("RLOCK_TEST_REDIRECT");
  while (pairs != nullptr && *pairs != '\0') {
    char* end = nullptr;
    const long from = std::strtol(pairs, &end, 10);
    if (*end != '=') {
      return port;
    }
    const long to = std::strtol(end + 1, &end, 10);
    if (from == port) {
      return to;
    }
    pairs = end;
  }
  return port;
}

}  // namespace

extern "C" int connect(int fd, const sockaddr* address, socklen_t length)
{
  sockaddr_in other{};
  if (address->sa_family == AF_INET && length == sizeof other) {
    std::memcpy(&other, address, sizeof other);
    other.sin_port = htons(static_cast<std::uint16_t>(redirected(ntohs(other.sin_port))));
    address = reinterpret_cast<const sockaddr*>(&other);
  }
  return static_cast<int>(::syscall(SYS_connect, fd, address, length));
}
