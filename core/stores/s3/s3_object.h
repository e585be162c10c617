// SPDX-License-Identifier: Apache-2.0
// What the object of a lock holds, as bytes and as values. Pure functions. Private to stores/s3.
//
// One object changes atomically in a bucket. So a commit is one PUT of all of it, if it has the ETag that was read: the record, the event
// log, the listeners and the messages. Each PUT has a random number in it, so no ETag ever comes back.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>
#include "base/reply.h"
#include "engine/record_backend.h"

namespace rlock::s3 {

// A listener renews `seen`, the store's time, every listener_beat; one that is silent for listener_life is dead.
inline constexpr std::chrono::seconds listener_beat{20};
inline constexpr std::chrono::seconds listener_life{60};
// So long a message stays for the living listeners to find.
inline constexpr std::chrono::seconds message_life{20};

struct StoredListener {
  std::string id;
  std::int64_t seen_us = 0;
  std::vector<std::string> channels;
};

struct StoredMessage {
  std::string id;
  std::int64_t at_us = 0;
  Message message;
};

struct LockObject {
  std::int64_t time_us = 0;  // the greatest time of the store that a writer has seen
  std::string record;
  record::Face face;  // stands in the metadata of the object as well
  std::map<std::int64_t, std::string> events;
  std::vector<StoredListener> listeners;  // the first one first
  std::vector<StoredMessage> messages;    // the oldest first
};

// `number`: of this PUT.
std::string bytes_of(const LockObject& object, std::uint64_t number);
// nullopt: the bytes are no object of this version of rlock.
std::optional<LockObject> object_in(std::string_view bytes);

// Puts the changes of a commit into the object, at `now_us`: the record, the log, the messages to living listeners. Forgets dead listeners
// and old messages.
void apply(const record::Change& change, std::int64_t now_us, LockObject& object, Rng& rng);

// The channels of the living listeners, sorted.
std::vector<std::string> living_channels(const LockObject& object, std::int64_t now_us);

}  // namespace rlock::s3
