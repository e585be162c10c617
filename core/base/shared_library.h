// SPDX-License-Identifier: Apache-2.0
// Loads a shared library at its first use and finds functions in it, so that a library that few runs need costs the others no time.
//
// A user of it lists the functions that it calls in a macro, from which follow a struct with a member for each, and its values:
//   #define RLOCK_ZLIB_FUNCTIONS(use) use(deflate) use(inflate)
//   struct Zlib { RLOCK_ZLIB_FUNCTIONS(RLOCK_FUNCTION_MEMBER) };
//   Result<const Zlib*> zlib()
//   {
//     return loaded_once<Zlib>(
//         {.file = "libz.so.1", .needed_by = "a ZIP file needs", .packages = "zlib: zlib1g on Debian"},
//         [](SharedLibrary& library) { return Zlib{RLOCK_ZLIB_FUNCTIONS(RLOCK_FUNCTION_IN_LIBRARY)}; });
//   }
#pragma once

#include <optional>
#include <string_view>
#include <variant>
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

// Which library is needed, and what for.
struct NeededLibrary {
  const char* file;            // "libssl.so.3"
  std::string_view needed_by;  // "rediss:// needs"
  std::string_view packages;   // "OpenSSL's library: libssl3 on Debian and Ubuntu"
};

// Why it cannot be loaded. ErrorCode::os: this process may open no more files; else ErrorCode::config.
Error cannot_load(const NeededLibrary& needed);

// Returns the same object to all threads, until the process ends. `find(library)` finds the functions; each struct of functions has
// one library. An Environment lives while the library is loaded.
template <typename Functions, typename Environment = std::monostate, typename Find>
Result<const Functions*> loaded_once(const NeededLibrary& needed, Find find)
{
  static const std::optional<Functions> loaded = [&]() -> std::optional<Functions> {
    [[maybe_unused]] const Environment environment;
    SharedLibrary library(needed.file);
    const Functions functions = find(library);
    return library.is_complete() ? std::optional(functions) : std::nullopt;
  }();
  return loaded ? Result<const Functions*>(&*loaded) : cannot_load(needed);
}

}  // namespace rlock
