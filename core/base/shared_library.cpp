// SPDX-License-Identifier: Apache-2.0
#include "base/shared_library.h"

#include "base/fd.h"

#include <string>

#include <dlfcn.h>
#include <fcntl.h>

namespace rlock {
namespace {

bool may_open_files() { return static_cast<bool>(Fd(::open("/", O_RDONLY | O_CLOEXEC))); }

}  // namespace

SharedLibrary::SharedLibrary(const char* file)
    : m_handle(::dlopen(file, RTLD_NOW | RTLD_LOCAL)), m_is_complete(m_handle != nullptr)
{
}

void* SharedLibrary::address(const char* name)
{
  void* const found = m_handle == nullptr ? nullptr : ::dlsym(m_handle, name);
  m_is_complete = m_is_complete && found != nullptr;
  return found;
}

Error cannot_load(const NeededLibrary& needed)
{
  const std::string failure = "cannot load " + std::string(needed.file);
  if (!may_open_files()) {
    return {ErrorCode::os, failure + ": too many open files (raise ulimit -n)"};
  }
  return {ErrorCode::config,
          failure + ", which " + std::string(needed.needed_by) + " (install " + std::string(needed.packages) + ")"};
}

}  // namespace rlock
