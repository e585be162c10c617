// SPDX-License-Identifier: Apache-2.0
// What a read takes out of the document of a lock. Private to stores/mongo.
#pragma once

#include <cstdint>
#include <string>
#include <vector>
#include "base/clock.h"
#include "engine/record_backend.h"
#include "stores/mongo/mongo_document.h"

namespace rlock::mongo {

// The version and the record, in a collection of rlock. False: the document is none of rlock.
bool take_record(const Fields& document, record::Snapshot& state);
// The same, and the face, in a collection of ShedLock, which writes no version and no record. False: the document is none of ShedLock.
bool take_shared(const Fields& document, record::Snapshot& state);

struct StoredMessage {
  std::int64_t id = 0;
  Message message;
  std::int64_t at_ms = 0;
};
std::vector<Document> documents_of(const std::vector<StoredMessage>& messages);

// What the last read or commit saw in a document beside its record.
struct Seen {
  std::string name;
  record::Version version;
  std::int64_t time_ms = 0;  // of the store
  Instant at;
  std::vector<StoredMessage> messages;
  std::vector<std::string> channels;        // of the living listeners, sorted
  std::vector<std::string> dead_listeners;  // their keys
};

// Also adds the listeners that live to the state. The name and `at` are left to the caller.
Seen seen_in(const Fields& document, record::Snapshot& state);

}  // namespace rlock::mongo
