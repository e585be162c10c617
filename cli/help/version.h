// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace rlock::cli {

void print_version();  // "rlock 0.1.0"

}  // namespace rlock::cli
