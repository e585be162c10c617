// SPDX-License-Identifier: Apache-2.0
#include "fuzz/shown.h"

#include "base/log.h"
#include "base/text.h"
#include "cli/output/json.h"
#include "cli/output/output.h"
#include "cli/output/prometheus.h"
#include "cli/output/watch.h"
#include "cli/verbs/force_unlock.h"
#include "fuzz/fuzzer.h"
#include "run/wait_message.h"
#include "support/clean_text.h"

#include <nlohmann/json.hpp>

#include <array>

namespace rlock::test {
namespace {

bool is_control_at(std::string_view text, std::size_t i)
{
  const auto byte = static_cast<unsigned char>(text[i]);
  const auto next = static_cast<unsigned char>(i + 1 < text.size() ? text[i + 1] : 0);
  return byte < 0x20 || byte == 0x7f || (byte == 0xc2 && next >= 0x80 && next <= 0x9f);
}

bool has_unprintable(std::string_view text)
{
  for (const std::string_view character : misleading) {
    if (text.find(character) != std::string_view::npos) {
      return true;
    }
  }
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\n' && is_control_at(text, i)) {
      return true;
    }
  }
  return false;
}

// By another implementation than that of rlock.
bool is_utf8(std::string_view text)
{
  try {
    return !nlohmann::json(std::string(text)).dump().empty();
  } catch (const nlohmann::json::exception&) {
    return false;
  }
}

// The line without control sequences of the form ESC [ digits m, which set colors.
std::string without_colors(std::string_view line)
{
  std::string bare;
  while (!line.empty()) {
    const auto end = line.starts_with("\x1b[") ? line.find_first_not_of("0123456789", 2) : std::string_view::npos;
    const bool is_color = end != std::string_view::npos && line[end] == 'm';
    bare += is_color ? "" : std::string(1, line.front());
    line.remove_prefix(is_color ? end + 1 : 1);
  }
  return bare;
}

// One of several screens and orders, which the numbers of the lock choose.
void promise_frame(const std::vector<LockState>& states)
{
  cli::Rates rates;
  rates.note(states, Instant{});
  const LockState& first = states.front();
  constexpr std::array sizes{cli::Size{3, 20}, cli::Size{24, 80}};
  constexpr std::array presses{"", "ka", "ttww", "r\x1b[B\x1b[B", "/x\n"};
  const cli::Size size = sizes[first.count % sizes.size()];
  cli::View view;
  press(view, presses[first.fence % presses.size()]);
  const cli::Picture picture{.states = states,
                             .rates = rates,
                             .server = "redis://db1",
                             .error = first.fence % 3 == 0 ? std::string_view(first.name.text()) : "",
                             .wall_ms = noon,
                             .now = Instant{} + std::chrono::seconds(1)};
  const auto lines = frame(picture, view, size);
  promise(lines.size() == size.rows, "watch: the rows fill the screen");
  for (const std::string& line : lines) {
    const std::string bare = without_colors(line);
    promise_clean(bare);
    promise(bare.find('\n') == std::string::npos && cli::width(bare) <= size.columns, "watch: a line fits", bare);
  }
}

// NAME{key="VALUE"} NUMBER
bool is_sample(std::string_view line)
{
  const auto value = line.find("{key=\"");
  const auto end = line.rfind("\"} ");
  if (!line.starts_with("rlock_") || value == std::string_view::npos || end == std::string_view::npos || value > end) {
    return false;
  }
  const std::string_view key = line.substr(value + 6, end - value - 6);
  for (std::size_t i = 0; i < key.size(); i += key[i] == '\\' ? 2 : 1) {
    const bool is_escape =
        key[i] == '\\' && i + 1 < key.size() && std::string_view("\\\"n").find(key[i + 1]) != std::string_view::npos;
    if (key[i] == '"' || (key[i] == '\\' && !is_escape)) {
      return false;
    }
  }
  return line.substr(end + 3).find_first_not_of("0123456789+-.Inf") == std::string_view::npos;
}

void promise_prometheus(const std::vector<LockState>& states)
{
  const std::string text = cli::prometheus_text(states, noon);
  promise_clean(text);
  Input lines(text);
  while (!lines.empty()) {
    const std::string_view line = lines.line();
    promise(line.starts_with("# ") || is_sample(line), "prometheus: a sample", line);
  }
}

void promise_messages(const LockState& state, const Holder& holder)
{
  const Busy busy{.ttl = state.ttl, .holder = holder, .waiters_ahead = state.fence, .ticket = state.fence};
  promise_one_line(wait_text("stock", busy, noon, Millis{100}));
  promise_one_line(busy_text("stock", Millis{1000}, holder));
  promise_json(json_line("notice", describe(holder), {.event = "busy", .holder = describe(holder)}, noon) + "\n");
  for (const ForceEnd& end :
       {ForceEnd(ReleasedByHolder{holder}), ForceEnd(ForceExpired{holder}), ForceEnd(Broken{holder, true}),
        ForceEnd(ForceChanged{holder}), ForceEnd(StillStopping{holder, Millis{15}})}) {
    promise_clean(cli::show_force(state.name, end));
    promise_clean(cli::show_force(state.name, end, false));
    promise_json(cli::force_json(state.name, end));
  }
}

}  // namespace

void promise_clean(std::string_view text)
{
  promise(!has_unprintable(text), "no control character is printed, and none that misleads", text);
  promise(is_utf8(text), "what is printed is UTF-8", text);
}

void promise_one_line(std::string_view text)
{
  promise_clean(text);
  promise(!text.empty() && text.find('\n') == std::string_view::npos, "a message is one line", text);
}

void promise_error(const Error& error)
{
  promise_one_line(without_controls(error.text));
  promise_json(json_line("error", error.text, {.event = "failed"}, noon) + "\n");
}

void promise_json(std::string_view text)
{
  promise(text.ends_with('\n'), "JSON ends its line", text);
  promise_one_line(text.substr(0, text.size() - 1));
  promise(nlohmann::json::accept(text), "JSON is valid", text);
}

void promise_shown(const LockState& state)
{
  promise_clean(cli::show_status(state, noon));
  promise_clean(cli::show_list({state, state}, noon));
  promise_json(cli::status_json(state));
  promise_json(cli::ttl_json(state));
  promise_prometheus({state, state});
  promise_frame({state, state});
  for (const Holder& holder : state.holders) {
    promise_messages(state, holder);
  }
}

void promise_shown(const cli::ShownEvent& event)
{
  const std::string line = cli::show_event(event);
  promise(line.ends_with('\n'), "an event ends its line", line);
  promise_one_line(std::string_view(line).substr(0, line.size() - 1));
  promise_json(cli::event_json(event));
}

}  // namespace rlock::test
