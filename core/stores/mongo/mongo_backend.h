// SPDX-License-Identifier: Apache-2.0
// Keeps the records of locks in a collection of a MongoDB database (4.4 or newer), a document for each lock (mongo_layout.h), on
// one server or on the primary of a replica set.
//
// A commit is on a majority of the replica set, and in its journals, before it is answered; a read sees each such commit. The time
// of a read is the server's answer to a `hello` before the read, in whole milliseconds, so it may be up to 1 ms before the sending;
// the drift that a lease allows covers that (LeaseTerm).
#pragma once

#include <memory>
#include "base/clock.h"
#include "engine/record_backend.h"
#include "stores/mongo/mongo_url.h"

namespace rlock::mongo {

// Connects at the first request. The server makes the collection. `clock` must outlive the backend.
std::unique_ptr<record::Backend> open_backend(ConnectionSpec spec, const Clock& clock, std::unique_ptr<Rng> rng);

}  // namespace rlock::mongo
