// SPDX-License-Identifier: Apache-2.0
// The bytes of a chunk of kept runs (kept_runs.h): the format, LockHistory::complete_since_ms, and for each run its texts that no run
// before it has, and its numbers. A number takes seven bits a byte, the lowest first; a text its length and its bytes.
#pragma once

#include "lock/past_run.h"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace rlock {

class ChunkWriter {
 public:
  explicit ChunkWriter(std::int64_t complete_since_ms) : m_complete_since_ms(complete_since_ms) {}
  void add(const PastRun& run);
  [[nodiscard]] std::size_t size() const { return m_bytes.size(); }
  [[nodiscard]] bool is_empty() const { return m_bytes.empty(); }
  // The chunk. The next one is empty.
  std::string take();

 private:
  void add_text(std::string_view text);

  std::int64_t m_complete_since_ms;
  std::int64_t m_last_start_ms = 0;
  std::string m_bytes;
  std::map<std::string, std::uint64_t, std::less<>> m_texts;  // with their places, from 1
};

// The runs of the chunk up to the first damage.
LockHistory decode_chunk(std::string_view chunk);

}  // namespace rlock
