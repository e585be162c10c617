// SPDX-License-Identifier: Apache-2.0
#include "store/mongo/libmongoc.h"

#include <optional>

namespace rlock::mongo {
namespace {

constexpr const char* file = "libmongoc-1.0.so.0";

std::optional<Libmongoc> load()
{
  SharedLibrary library(file);
  const Libmongoc functions{RLOCK_LIBMONGOC_FUNCTIONS(RLOCK_FUNCTION_IN_LIBRARY)};
  if (!library.is_complete()) {
    return std::nullopt;
  }
  functions.mongoc_init();
  functions.mongoc_log_set_handler(nullptr, nullptr);  // else it writes its warnings to standard error
  return functions;
}

}  // namespace

Result<const Libmongoc*> libmongoc()
{
  static const std::optional<Libmongoc> loaded = load();
  if (!loaded) {
    return cannot_load(file, "mongodb:// needs",
                       "MongoDB's C driver, version 1: libmongoc-1.0-0 on Debian and Ubuntu, mongo-c-driver-libs on "
                       "Fedora");
  }
  return &*loaded;
}

}  // namespace rlock::mongo
