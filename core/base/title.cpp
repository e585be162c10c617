// SPDX-License-Identifier: Apache-2.0
#include "base/title.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include <unistd.h>

namespace rlock {
namespace {

char* first = nullptr;
std::size_t size = 0;

}  // namespace

// The kernel puts the strings of both next to each other.
void keep_title(char** argv)
{
  char* end = argv[0];
  for (char** const strings : {argv, environ}) {
    for (char** each = strings; *each != nullptr; ++each) {
      end = *each == end ? end + std::strlen(end) + 1 : end;
    }
  }
  first = argv[0];
  size = static_cast<std::size_t>(end - first);
}

void replace_title(const char* text)
{
  if (size > 0) {
    std::memset(first, 0, size);
    std::copy_n(text, std::min(size - 1, std::strlen(text)), first);
  }
}

}  // namespace rlock
