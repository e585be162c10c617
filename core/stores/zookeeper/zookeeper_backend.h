// SPDX-License-Identifier: Apache-2.0
// Keeps the records of locks in nodes of a ZooKeeper ensemble (3.5 or newer; zookeeper_layout.h). A hold ends with a presence, an
// ephemeral node.
//
// A commit is one multi, which a majority of the ensemble has on its disks before it is answered. A read is behind a sync, so the member
// that answers it has each commit that was answered before.
#pragma once

#include <memory>
#include "base/clock.h"
#include "engine/record_backend.h"
#include "stores/zookeeper/zookeeper_url.h"

namespace rlock::zookeeper {

// Connects at the first request, and makes the nodes that are missing. `clock` must outlive the backend.
std::unique_ptr<record::Backend> open_backend(ConnectionSpec spec, const Clock& clock, std::unique_ptr<Rng> rng);

}  // namespace rlock::zookeeper
