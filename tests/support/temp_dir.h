// SPDX-License-Identifier: Apache-2.0
// Directories (0700, under TMPDIR) of one test case. They are removed if the test case passes, and kept and named if it fails.
#pragma once

#include <filesystem>
#include <string_view>

namespace rlock::test {

// Makes a new directory. Its path is short, because it may contain sockets.
std::filesystem::path make_temp_dir(std::string_view purpose);

// Returns the same directory throughout a test case, which replaces the directories of the user.
std::filesystem::path home_dir();

// main.cpp calls this at the end of each test case. keep: keeps the directories and returns their path; empty: there were none.
void remove_temp_dirs();
std::filesystem::path keep_temp_dirs();

}  // namespace rlock::test
