// SPDX-License-Identifier: Apache-2.0
#include "store/record/record_store.h"

#include <utility>
#include "store/record/record_host.h"
#include "store/script/script_store.h"

namespace rlock::record {

std::unique_ptr<LockStore> store_on(std::unique_ptr<Backend> backend, const Clock& clock)
{
  auto host = std::make_unique<RecordHost>(std::move(backend), clock, std::make_unique<SystemRng>());
  return std::make_unique<ScriptStore>(std::move(host), clock);
}

}  // namespace rlock::record
