// SPDX-License-Identifier: Apache-2.0
// What most tests with a server include: rlock as a process, a server, files, and waiting for a condition.
#pragma once

#include "support/process.h"
#include "support/redis_fixture.h"
#include "support/temp_dir.h"
#include "support/test.h"
#include "support/text_file.h"
#include "support/wait_until.h"

#define SERVER_CASE(title) CASE_WITH(rlock::test::RedisServer, server, title)
