// SPDX-License-Identifier: Apache-2.0
#include "lock/holder.h"

#include "base/duration.h"
#include "base/secrets.h"
#include "base/text.h"
#include "lock/lock_state.h"

#include <algorithm>
#include <charconv>
#include <cstddef>

namespace rlock {
namespace {

constexpr std::size_t longest_name = 256;  // of a host or a user: HOST_NAME_MAX is 64, LOGIN_NAME_MAX 256

std::string escape(std::string_view value)
{
  constexpr char digits[] = "0123456789ABCDEF";
  std::string out;
  for (const char c : value) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == '%' || byte == 0x7f) {
      out += {'%', digits[byte >> 4], digits[byte & 15]};
    } else {
      out += c;
    }
  }
  return out;
}

std::optional<unsigned char> hex_pair(std::string_view text)
{
  unsigned char byte = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), byte, 16);
  const bool whole = failed == std::errc{} && end == text.data() + 2;
  return whole ? std::optional{byte} : std::nullopt;
}

std::string unescape(std::string_view value)
{
  std::string out;
  for (std::size_t i = 0; i < value.size(); ++i) {
    const auto byte = value[i] == '%' ? hex_pair(value.substr(i + 1, 2)) : std::nullopt;
    out += byte ? static_cast<char>(*byte) : value[i];
    i += byte ? 2 : 0;
  }
  return out;
}

std::int64_t number(std::string_view text)
{
  std::int64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

// Another version of rlock, or another program, may have written secrets or a text of any length.
std::string shown_text(std::string_view value, std::size_t most) { return std::string(cut_to(unescape(value), most)); }

// False: rlock writes no field of that name.
bool set_field(HolderInfo& info, std::string_view name, std::string_view value)
{
  if (name == "host") {
    info.host = shown_text(value, longest_name);
  } else if (name == "pid") {
    info.pid = number(value);
  } else if (name == "user") {
    info.user = shown_text(value, longest_name);
  } else if (name == "command") {
    info.command = cut_to(without_secrets(unescape(value)), longest_command);
  } else if (name == "label") {
    info.label = shown_text(value, longest_label);
  } else if (name == "since") {
    info.since_ms = number(value);
  } else if (name == "lease") {
    info.lease = Millis{number(value)};
  } else if (name == "kill_after") {
    info.kill_after = std::clamp(Millis{number(value)}, Millis{0}, longest_duration);
  } else if (name == "latest") {
    info.latest = value == "1";
  } else if (name == "history") {
    info.history = Millis{number(value)};
  } else if (name == "auto") {
    info.automatic = value == "1";
  } else {
    return false;
  }
  return true;
}

}  // namespace

std::string encode(const HolderInfo& info)
{
  const std::string kill_after =
      info.kill_after == default_kill_after ? "" : "\nkill_after=" + std::to_string(info.kill_after.count());
  const std::string history = info.history ? "history=" + std::to_string(info.history->count()) + "\n" : "";
  return history + "host=" + escape(info.host) + "\npid=" + std::to_string(info.pid) + "\nuser=" + escape(info.user) +
         "\ncommand=" + escape(cut_to(info.command, longest_command)) +
         "\nlabel=" + escape(cut_to(info.label, longest_label)) + "\nsince=" + std::to_string(info.since_ms) +
         "\nlease=" + std::to_string(info.lease.count()) + kill_after + (info.latest ? "\nlatest=1" : "") +
         "\nauto=" + (info.automatic ? "1" : "0");
}

std::optional<HolderInfo> decode_holder(std::string_view text)
{
  HolderInfo info;
  bool valid = false;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (const auto equals = line.find('='); equals != std::string_view::npos) {
      valid |= set_field(info, line.substr(0, equals), line.substr(equals + 1));
    }
  }
  return valid ? std::optional{info} : std::nullopt;
}

std::string describe_who(const Owner& owner, const std::optional<HolderInfo>& info)
{
  return info ? printable(info->user + "@" + info->host) + " (pid " + std::to_string(info->pid) + ")"
              : printable(owner.text());
}

std::string describe_job(const HolderInfo& info)
{
  const std::string command = info.command.empty() ? "" : "running " + printable(info.command);
  const std::string label = info.label.empty() ? "" : "[" + printable(info.label) + "]";
  return command + (command.empty() || label.empty() ? "" : " ") + label;
}

std::string describe(const Holder& holder)
{
  const std::string job = holder.info ? describe_job(*holder.info) : "";
  return describe_who(holder.owner, holder.info) + (job.empty() ? "" : ", ") + job;
}

}  // namespace rlock
