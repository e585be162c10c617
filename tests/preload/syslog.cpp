// SPDX-License-Identifier: Apache-2.0
// syslog(3) that writes "FACILITY PRIORITY IDENT: line" into the file that RLOCK_TEST_SYSLOG names.
#include <cstdarg>
#include <cstdio>
#include <cstdlib>

#include <syslog.h>

namespace {

const char* ident = "";
int facility = LOG_USER;

void write_line(int priority, const char* format, va_list values)
{
  const char* const path = std::getenv("RLOCK_TEST_SYSLOG");
  std::FILE* const file = path != nullptr ? std::fopen(path, "a") : nullptr;
  if (file == nullptr) {
    return;
  }
  std::fprintf(file, "%d %d %s: ", facility >> 3, LOG_PRI(priority), ident);
  std::vfprintf(file, format, values);
  std::fputc('\n', file);
  std::fclose(file);
}

}  // namespace

extern "C" {

void openlog(const char* new_ident, int, int new_facility)
{
  ident = new_ident;
  facility = new_facility;
}

void syslog(int priority, const char* format, ...)
{
  va_list values;
  va_start(values, format);
  write_line(priority, format, values);
  va_end(values);
}

// What a fortified program calls.
void __syslog_chk(int priority, int, const char* format, ...)  // NOLINT(bugprone-reserved-identifier)
{
  va_list values;
  va_start(values, format);
  write_line(priority, format, values);
  va_end(values);
}
}
