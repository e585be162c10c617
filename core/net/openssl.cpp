// SPDX-License-Identifier: Apache-2.0
#include "net/openssl.h"

#include "base/fd.h"

#include <optional>

#include <dlfcn.h>
#include <fcntl.h>

namespace rlock {
namespace {

// The version of the headers, because the types come from them.
#define RLOCK_TEXT_OF(number) #number
#define RLOCK_LIBRARY(version) "libssl.so." RLOCK_TEXT_OF(version)
constexpr const char* library = RLOCK_LIBRARY(OPENSSL_SHLIB_VERSION);

std::optional<OpenSsl> load()
{
  void* const handle = ::dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    return std::nullopt;
  }
  OpenSsl loaded{};
  bool complete = true;
  // dlsym also finds the functions of libcrypto, because libssl depends on it.
#define RLOCK_LOAD(name)                                                     \
  loaded.name = reinterpret_cast<decltype(&::name)>(::dlsym(handle, #name)); \
  complete = complete && loaded.name != nullptr;
  RLOCK_OPENSSL_FUNCTIONS(RLOCK_LOAD)
#undef RLOCK_LOAD
  return complete ? std::optional(loaded) : std::nullopt;
}

bool may_open_files() { return static_cast<bool>(Fd(::open("/", O_RDONLY | O_CLOEXEC))); }

}  // namespace

Result<const OpenSsl*> openssl()
{
  static const std::optional<OpenSsl> loaded = load();
  if (!loaded && !may_open_files()) {
    return Error{ErrorCode::os, std::string("cannot load ") + library + ": too many open files (raise ulimit -n)"};
  }
  if (!loaded) {
    return Error{ErrorCode::config, std::string("cannot load ") + library +
                                        ", which rediss:// needs (install OpenSSL's library: libssl3 "
                                        "on Debian and Ubuntu, openssl-libs on Fedora)"};
  }
  return &*loaded;
}

}  // namespace rlock
