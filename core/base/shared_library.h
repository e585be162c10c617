// SPDX-License-Identifier: Apache-2.0
// Loads a shared library and finds functions in it, so that a library that few runs need costs the others no time.
//
// A user of it lists the functions that it calls in a macro, from which follow the members of a struct and their values:
//   #define RLOCK_ZLIB_FUNCTIONS(use) use(deflate) use(inflate)
//   struct Zlib { RLOCK_ZLIB_FUNCTIONS(RLOCK_FUNCTION_MEMBER) };
//   SharedLibrary library("libz.so.1");
//   const Zlib zlib{RLOCK_ZLIB_FUNCTIONS(RLOCK_FUNCTION_IN_LIBRARY)};
#pragma once

#include <string_view>
#include "base/result.h"

#define RLOCK_FUNCTION_MEMBER(name) decltype(&::name) name;  // NOLINT(bugprone-macro-parentheses)
// The address in the SharedLibrary that the caller has as `library`.
#define RLOCK_FUNCTION_IN_LIBRARY(name) .name = library.find<decltype(&::name)>(#name),
// The address in a library that is linked.
#define RLOCK_LINKED_FUNCTION(name) .name = &::name,

namespace rlock {

// Stays loaded until the process ends. Not thread-safe.
class SharedLibrary {
 public:
  explicit SharedLibrary(const char* file);

  // nullptr: the library is not there or has no such function. It also finds functions of the libraries that this one depends on.
  template <typename Function>
  Function find(const char* name)
  {
    return reinterpret_cast<Function>(address(name));
  }
  // The library is there and each function that was looked for.
  [[nodiscard]] bool is_complete() const { return m_is_complete; }

 private:
  void* address(const char* name);

  void* m_handle;
  bool m_is_complete;
};

// Why the library `file` cannot be loaded. ErrorCode::os: this process may open no more files; else ErrorCode::config.
//   needed_by: "rediss:// needs"    packages: "OpenSSL's library: libssl3 on Debian and Ubuntu"
Error cannot_load(std::string_view file, std::string_view needed_by, std::string_view packages);

}  // namespace rlock
