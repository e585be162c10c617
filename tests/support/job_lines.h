// SPDX-License-Identifier: Apache-2.0
// What the shells of jobs do, so that a test can see and steer them.
#pragma once

#include "support/process.h"
#include "support/temp_dir.h"
#include "support/text_file.h"
#include "support/wait_until.h"

#include <filesystem>
#include <fstream>
#include <string>

namespace rlock::test {

inline Words shell(const std::string& line) { return {"sh", "-c", line}; }

inline std::string until_exists(const std::filesystem::path& file)
{
  return "until [ -e " + file.string() + " ]; do sleep 0.02; done";
}
inline void create(const std::filesystem::path& file) { std::ofstream(file).flush(); }

inline std::string noting(const std::string& word) { return "echo " + word + " >> " + (home_dir() / "order").string(); }
inline std::string order() { return text_of(home_dir() / "order"); }  // the words that jobs have noted
// Until they have noted these.
inline void await_order(const std::string& words)
{
  wait_until([&] { return order() == words; }, "the jobs have noted " + words);
}

// Until a waiter has this place in the queue of the lock k.
inline void await_place(const std::string& url, int place)
{
  const std::string text = "\"place\":" + std::to_string(place);
  const auto is_there = [&] { return run_at(url, {"status", "--json", "k"}).out.find(text) != std::string::npos; };
  wait_until(is_there, "a waiter has the place " + std::to_string(place));
}

inline std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

}  // namespace rlock::test
