// SPDX-License-Identifier: Apache-2.0
// A table of locks that rlock shares with another program, which knows nothing of records: it sees and writes the face alone.
#pragma once

#include <cstdint>
#include "engine/key_space.h"
#include "engine/lock_keys.h"
#include "engine/record_backend.h"
#include "engine/record_codec.h"

namespace rlock::record {

// The face of a lock with these keys.
Face face_of(const KeySpace::Keys& keys, const LockKeys& names);

// Makes the record agree with the face that the store shows at `time_us`. If another program wrote that face, the lock is held by
// a foreign owner, of which no record tells more than its name, as a lock of Redisson is; or the lock was released. A pure function.
void fit_to_face(LockRecord& record, const Face& seen, const LockKeys& names, std::int64_t time_us);

}  // namespace rlock::record
