// SPDX-License-Identifier: Apache-2.0
#include "stores/mongo/libmongoc.h"

#include <cstdlib>

namespace rlock::mongo {
namespace {

// libmongoc keeps counters in a file of /dev/shm, from the moment when it is loaded, and a process that is killed leaves the file
// behind. While this object lives, a variable forbids that; afterwards the environment, which the job inherits, is as it was.
// NOLINTBEGIN(concurrency-mt-unsafe): the first URL is read before there is a second thread.
class WithoutCounters {
 public:
  WithoutCounters() : m_is_set(std::getenv(variable) != nullptr) { ::setenv(variable, "1", 0); }
  ~WithoutCounters()
  {
    if (!m_is_set) {
      ::unsetenv(variable);
    }
  }
  WithoutCounters(const WithoutCounters&) = delete;
  WithoutCounters& operator=(const WithoutCounters&) = delete;

 private:
  static constexpr const char* variable = "MONGOC_DISABLE_SHM";
  bool m_is_set;
};
// NOLINTEND(concurrency-mt-unsafe)

}  // namespace

Result<const Libmongoc*> libmongoc()
{
  return loaded_once<Libmongoc, WithoutCounters>(
      {.file = "libmongoc-1.0.so.0",
       .needed_by = "mongodb:// needs",
       .packages =
           "MongoDB's C driver, version 1: libmongoc-1.0-0 on Debian and Ubuntu, mongo-c-driver-libs on Fedora"},
      [](SharedLibrary& library) {
        const Libmongoc functions{RLOCK_LIBMONGOC_FUNCTIONS(RLOCK_FUNCTION_IN_LIBRARY)};
        if (library.is_complete()) {
          functions.mongoc_log_set_handler(nullptr, nullptr);  // else it writes its warnings to standard error
          functions.mongoc_init();
        }
        return functions;
      });
}

}  // namespace rlock::mongo
