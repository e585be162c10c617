// SPDX-License-Identifier: Apache-2.0
// Reads what jobs and rlocks have written.
#pragma once

#include "judge/records.h"

#include <filesystem>
#include <optional>
#include <string_view>

namespace rlock::judge {

// Adds whole lines of a job's file to `evidence`; returns how many bytes these lines have.
std::size_t add_lines(std::string_view text, Evidence& evidence);

// When rlock said, in its JSON log, that it waits. That is one second after it was queued. `wall_offset`: wall clock minus
// CLOCK_BOOTTIME.
std::optional<Instant> queued_since(const std::string& log, std::chrono::nanoseconds wall_offset);

// Follows the file of one job while it grows.
class EvidenceFile {
 public:
  explicit EvidenceFile(std::filesystem::path path) : m_path(std::move(path)) {}
  [[nodiscard]] const std::filesystem::path& path() const { return m_path; }
  void read_on(Evidence& evidence);

 private:
  std::filesystem::path m_path;
  std::size_t m_read = 0;
};

}  // namespace rlock::judge
