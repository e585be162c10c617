// SPDX-License-Identifier: Apache-2.0
#include "cli/options/one_lock.h"

namespace rlock::cli {

Result<OneLock> open_lock(const RawOneLock& raw, const Call& call)
{
  Result<LockName> name = resolve_key(raw.keys, call.operands);
  if (!name) {
    return name.error();
  }
  Result<OpenedStore> opened = open_server(raw.server, call.environment);
  if (!opened) {
    return opened.error();
  }
  return OneLock{.name = *std::move(name), .opened = *std::move(opened)};
}

}  // namespace rlock::cli
