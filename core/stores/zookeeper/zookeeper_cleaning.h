// SPDX-License-Identifier: Apache-2.0
// Deletes records of locks. Each deletion changes the version of the node `deletions`. Private to stores/zookeeper.
#pragma once

#include <string_view>
#include "base/clock.h"
#include "stores/zookeeper/zookeeper_client.h"
#include "stores/zookeeper/zookeeper_layout.h"

namespace rlock::zookeeper {

// Backend::erase.
Result<Done> erase_lock(Client& client, const Layout& layout, std::string_view name, const CallLimits& limit);

// Looks at some of the records, and deletes those that are of no use any more. A failure is of no account.
void delete_useless_records(Client& client, const Layout& layout, Rng& rng, const CallLimits& limit);

}  // namespace rlock::zookeeper
