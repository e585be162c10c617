// SPDX-License-Identifier: Apache-2.0
#include "lock/kept_runs_codec.h"

#include "base/defaults.h"
#include "base/duration.h"
#include "base/varint.h"
#include "lock/schema.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

namespace rlock {
namespace {

constexpr char format = 1;
constexpr std::size_t longest_text = 4096;                          // more is damage
constexpr std::int64_t latest_ms = (std::int64_t{1} << 52) / 1000;  // that is believed: of the year 2112
constexpr std::uint64_t greatest_fence = std::uint64_t{1} << 62;
constexpr std::size_t uuid_bytes = 16;
constexpr std::array<std::size_t, 4> uuid_dashes{8, 13, 18, 23};
constexpr std::size_t uuid_text = 36;

// What a run has. The bits above are the place of the outcome in `outcomes`, from 1.
constexpr std::uint64_t has_duration = 1;
constexpr std::uint64_t has_exit_code = 2;
constexpr std::uint64_t has_info = 4;
constexpr std::uint64_t has_usual_owner = 8;
constexpr int outcome_shift = 4;

// A place keeps its meaning.
constexpr std::array outcomes{Outcome::succeeded, Outcome::failed,    Outcome::cancelled, Outcome::lost,
                              Outcome::forced,    Outcome::timed_out, Outcome::skipped};
// The attempt of a skipped run, which has made none, that a newer run replaced. Older readers take it for any skipped run.
constexpr int replaced_attempt = 1;

std::uint64_t zigzag(std::int64_t number)
{
  return (static_cast<std::uint64_t>(number) << 1) ^ (number < 0 ? ~std::uint64_t{0} : 0);
}
std::int64_t unzigzag(std::uint64_t number)
{
  return static_cast<std::int64_t>(number >> 1) ^ -static_cast<std::int64_t>(number & 1);
}

// "<uuid>:<pid>" (Owner::fresh) as bytes and pid; nullopt: another owner.
std::optional<std::pair<std::string, std::uint64_t>> usual_owner(std::string_view text)
{
  if (text.size() < uuid_text + 2 || text[uuid_text] != ':') {
    return std::nullopt;
  }
  std::string bytes;
  for (std::size_t i = 0; i < uuid_text;) {
    if (std::ranges::find(uuid_dashes, i) != uuid_dashes.end()) {
      ++i;
      continue;
    }
    unsigned char byte = 0;
    std::from_chars(text.data() + i, text.data() + i + 2, byte, 16);
    bytes += static_cast<char>(byte);
    i += 2;
  }
  std::uint64_t pid = 0;
  std::from_chars(text.data() + uuid_text + 1, text.data() + text.size(), pid);
  return std::pair{bytes, pid};
}

std::string owner_text(std::string_view bytes, std::uint64_t pid)
{
  std::string text;
  for (const char byte : bytes) {
    if (std::ranges::find(uuid_dashes, text.size()) != uuid_dashes.end()) {
      text += '-';
    }
    std::array<char, 3> hex{};
    std::snprintf(hex.data(), hex.size(), "%02x", static_cast<unsigned>(static_cast<unsigned char>(byte)));
    text += hex.data();
  }
  return text + ":" + std::to_string(pid);
}

std::uint64_t place_of(const std::optional<Outcome>& outcome)
{
  const auto found = outcome ? std::ranges::find(outcomes, *outcome) : outcomes.end();
  return found == outcomes.end() ? 0 : static_cast<std::uint64_t>(found - outcomes.begin()) + 1;
}

class ChunkReader {
 public:
  explicit ChunkReader(std::string_view bytes) : m_rest(bytes) {}

  [[nodiscard]] bool at_end() const { return m_rest.empty() || m_is_damaged; }
  [[nodiscard]] bool is_damaged() const { return m_is_damaged; }

  std::uint64_t number()
  {
    const auto number = take_varint(m_rest);
    m_is_damaged = m_is_damaged || !number;
    return m_is_damaged ? 0 : *number;
  }

  std::int64_t number_below(std::int64_t most)
  {
    return static_cast<std::int64_t>(std::min(number(), static_cast<std::uint64_t>(most)));
  }
  Millis time() { return Millis{number_below(longest_duration.count())}; }

  std::string_view take(std::size_t size)
  {
    m_is_damaged = m_is_damaged || size > m_rest.size();
    const std::string_view taken = m_rest.substr(0, m_is_damaged ? 0 : size);
    m_rest.remove_prefix(taken.size());
    return taken;
  }

  std::string_view text()
  {
    const std::uint64_t place = number();
    if (place == 0) {
      const std::uint64_t size = number();
      m_is_damaged = m_is_damaged || size > longest_text;
      m_texts.push_back(take(m_is_damaged ? 0 : size));
      return m_texts.back();
    }
    m_is_damaged = m_is_damaged || place > m_texts.size();
    return m_is_damaged ? std::string_view() : m_texts[place - 1];
  }

 private:
  std::string_view m_rest;
  std::vector<std::string_view> m_texts;
  bool m_is_damaged = false;
};

std::optional<HolderInfo> read_info(ChunkReader& in, std::int64_t start_ms)
{
  auto info = decode_holder(in.text());
  const std::int64_t pid = in.number_below(std::numeric_limits<std::int32_t>::max());
  if (info) {
    info->pid = pid;
    info->since_ms = start_ms;
  }
  return info;
}

// A fencing number is the time of the grant, or a small number; it is stored by its distance from the start. 0: there is none.
std::uint64_t stored_fence(std::uint64_t fence, std::int64_t start_ms)
{
  return fence == 0 || fence > greatest_fence ? 0 : zigzag(static_cast<std::int64_t>(fence) - start_ms * 1000) + 1;
}

std::uint64_t fence_near(std::uint64_t stored, std::int64_t start_ms)
{
  const std::uint64_t fence =
      static_cast<std::uint64_t>(unzigzag(stored - 1)) + static_cast<std::uint64_t>(start_ms) * 1000;
  return stored == 0 || fence > greatest_fence ? 0 : fence;
}

PastRun read_run(ChunkReader& in, std::int64_t& last_start_ms)
{
  const std::uint64_t has = in.number();
  const std::string_view uuid = (has & has_usual_owner) != 0 ? in.take(uuid_bytes) : std::string_view();
  PastRun run{.owner =
                  Owner::of((has & has_usual_owner) != 0 ? owner_text(uuid, in.number()) : std::string(in.text()))};
  run.start_ms = std::clamp<std::int64_t>(unzigzag(in.number()), -latest_ms, latest_ms) + last_start_ms;
  run.start_ms = std::clamp<std::int64_t>(run.start_ms, 0, latest_ms);
  last_start_ms = run.start_ms;
  run.fence = fence_near(in.number(), run.start_ms);
  if ((has & has_duration) != 0) {
    run.duration = in.time();
  }
  if ((has & has_exit_code) != 0) {
    run.exit_code = static_cast<int>(in.number_below(std::numeric_limits<int>::max()));
  }
  const std::uint64_t outcome = has >> outcome_shift;
  if (outcome > 0 && outcome <= outcomes.size()) {
    run.outcome = outcomes[outcome - 1];
  }
  if ((has & has_info) != 0) {
    run.info = read_info(in, run.start_ms);
  }
  run.times = std::max<std::int64_t>(in.number_below(std::numeric_limits<std::int32_t>::max()), 1);
  run.waited = in.time();
  const std::int64_t attempt = in.number_below(std::numeric_limits<int>::max());
  run.replaced = run.outcome == Outcome::skipped && attempt == replaced_attempt;
  run.attempt = run.replaced ? 0 : static_cast<int>(attempt);
  run.kept_for = in.time();
  run.forced_by = in.text();
  run.busy_by = in.text();
  return run;
}

}  // namespace

void ChunkWriter::add_text(std::string_view text)
{
  const auto [known, is_new] = m_texts.try_emplace(std::string(text.substr(0, longest_text)), m_texts.size() + 1);
  put_varint(m_bytes, is_new ? 0 : known->second);
  if (is_new) {
    put_varint(m_bytes, known->first.size());
    m_bytes += known->first;
  }
}

void ChunkWriter::add(const PastRun& run)
{
  if (m_bytes.empty()) {
    m_bytes += format;
    put_varint(m_bytes, static_cast<std::uint64_t>(std::max<std::int64_t>(m_complete_since_ms, 0)));
  }
  const auto owner = usual_owner(run.owner.text());
  const bool is_usual = owner && owner_text(owner->first, owner->second) == run.owner.text();
  put_varint(m_bytes, (run.duration ? has_duration : 0) | (run.exit_code ? has_exit_code : 0) |
                          (run.info ? has_info : 0) | (is_usual ? has_usual_owner : 0) |
                          (place_of(run.outcome) << outcome_shift));
  if (is_usual) {
    m_bytes += owner->first;
    put_varint(m_bytes, owner->second);
  } else {
    add_text(run.owner.text());
  }
  const std::int64_t start_ms = std::clamp<std::int64_t>(run.start_ms, 0, latest_ms);
  put_varint(m_bytes, zigzag(start_ms - std::exchange(m_last_start_ms, start_ms)));
  put_varint(m_bytes, stored_fence(run.fence, start_ms));
  if (run.duration) {
    put_varint(m_bytes, static_cast<std::uint64_t>(std::max<std::int64_t>(run.duration->count(), 0)));
  }
  if (run.exit_code) {
    put_varint(m_bytes, static_cast<std::uint64_t>(std::max(*run.exit_code, 0)));
  }
  if (run.info) {
    HolderInfo info = *run.info;
    info.pid = info.since_ms = 0;
    add_text(encode(info));
    put_varint(m_bytes, static_cast<std::uint64_t>(std::max<std::int64_t>(run.info->pid, 0)));
  }
  put_varint(m_bytes, static_cast<std::uint64_t>(std::max<std::int64_t>(run.times, 0)));
  put_varint(m_bytes, static_cast<std::uint64_t>(std::max<std::int64_t>(run.waited.count(), 0)));
  put_varint(m_bytes, static_cast<std::uint64_t>(run.replaced ? replaced_attempt : std::max(run.attempt, 0)));
  put_varint(m_bytes, static_cast<std::uint64_t>(std::max<std::int64_t>(run.kept_for.count(), 0)));
  add_text(run.forced_by);
  add_text(run.busy_by);
}

std::string ChunkWriter::take()
{
  m_texts.clear();
  m_last_start_ms = 0;
  return std::exchange(m_bytes, {});
}

LockHistory decode_chunk(std::string_view chunk)
{
  LockHistory history;
  if (chunk.empty() || chunk.front() != format) {
    return history;
  }
  ChunkReader in(chunk.substr(1));
  history.complete_since_ms = in.number_below(latest_ms);
  std::int64_t last_start_ms = 0;
  while (!in.at_end()) {
    PastRun run = read_run(in, last_start_ms);
    if (!in.is_damaged()) {
      history.runs.push_back(std::move(run));
    }
  }
  return history;
}

}  // namespace rlock
