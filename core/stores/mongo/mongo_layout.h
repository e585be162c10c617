// SPDX-License-Identifier: Apache-2.0
// The document of a lock.
//
//   _id            the name of the lock
//   version        a random number; changes with each commit and with each new listener
//   record         the record of the lock (engine)
//   locked_by, lock_until, forget_at   the record's Face; missing: empty, or 0
//   events         the event log: {e17: "...", e18: "..."}
//   listeners      {l0123456789abcdef: {channels: [...], seen: DATE}}, the first one first. Each listener renews `seen`, the
//                  server's time, every listener_beat; one that is silent for listener_life is dead
//   messages       [{id: NUMBER, channel: "...", text: "...", at: DATE}], the oldest first: those of the last message_life, for
//                  living listeners to find
//
// In a collection of ShedLock (?table=) these stand beside its fields, which are the Face: lockUntil, lockedBy and lockedAt. A document
// that only ShedLock has written has no version and no record; none is ever without lockUntil, which ShedLock would not find.
//
// One document changes atomically in MongoDB. So a commit is one update of the document that has this version, with its events
// and messages in it. RecordHost keeps the event log short (event_count).
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include "base/clock.h"
#include "engine/record_backend.h"
#include "stores/mongo/mongo_document.h"

namespace rlock::mongo {

inline constexpr Millis listener_beat{3000};
inline constexpr Millis listener_life{8000};
inline constexpr Millis listener_silence{5000};  // longer than a living one is silent; the process may be over
inline constexpr Millis message_life{5000};

using Events = std::map<std::int64_t, std::string>;
Events events_in(const Fields& document);
Document events_document(const Events& events);
// Adds an entry of the log to what an update sets.
void set_event(Document& set, std::int64_t id, const std::string& entry);

// Adds what the face has to `set`, and the names of what it has not to `unset`.
void add_face(const record::Face& face, Document& set, Document& unset);

// The document, if it has this version.
Document filter_of(std::string_view name, const record::Version& version, bool is_shared);

// Of a document of ShedLock; nullopt: it is none.
std::optional<record::Face> shared_face_in(const Fields& document);
// Adds the face to a document of ShedLock, which shows `seen` at `time_ms`; nullptr: to a new one. A lock that is free keeps the name
// of its last holder, as ShedLock leaves it.
void add_shared_face(const record::Face& face, const record::Face* seen, std::int64_t time_ms, Document& set);

}  // namespace rlock::mongo
