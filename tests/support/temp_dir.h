// SPDX-License-Identifier: Apache-2.0
// Directories (0700, under TMPDIR) of one test case: removed when it passes, kept and named when it fails.
#pragma once

#include <filesystem>
#include <string_view>

namespace rlock::test {

// A new one at each call. Paths stay short, because sockets live in them.
std::filesystem::path make_temp_dir(std::string_view purpose);

// The same one throughout a test case: stands in for the user's own directories.
std::filesystem::path home_dir();

// For main.cpp, at the end of each test case. keep: returns their path; empty: there were none.
void remove_temp_dirs();
std::filesystem::path keep_temp_dirs();

}  // namespace rlock::test
