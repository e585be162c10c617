// SPDX-License-Identifier: Apache-2.0
// What a real server answers and holds, in the words of the model, so that the two can be compared.
#pragma once

#include "redis/codec.h"
#include "sim/model_redis.h"
#include "support/redis_fixture.h"

namespace rlock::sim {

// Without the difference between a status and a text, and of an error only its code: Redis adds the line of the script.
Reply comparable(const Reply& reply);

// The server's keys in the form of the model.
KeySpace::Keys keys_of(const test::RedisServer& server);

}  // namespace rlock::sim
