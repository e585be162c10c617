// SPDX-License-Identifier: Apache-2.0
// The command line that ps(1) shows of this process.
#pragma once

namespace rlock {

// Notes the memory of the arguments and of the environment. Call this once, at the start of main.
void keep_title(char** argv);

// Shows `text` in place of the arguments, and nothing in place of the environment. The process must not use its environment
// afterwards. Does nothing where keep_title was not called. Async-signal-safe.
void replace_title(const char* text);

}  // namespace rlock
