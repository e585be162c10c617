// SPDX-License-Identifier: Apache-2.0
#include "engine/record_store.h"

#include <utility>
#include "engine/record_host.h"
#include "engine/script_store.h"

namespace rlock::record {

std::unique_ptr<LockStore> store_on(std::unique_ptr<Backend> backend, const Clock& clock)
{
  auto host = std::make_unique<RecordHost>(std::move(backend), clock, std::make_unique<SystemRng>());
  return std::make_unique<ScriptStore>(std::move(host), clock);
}

}  // namespace rlock::record
