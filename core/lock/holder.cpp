// SPDX-License-Identifier: Apache-2.0
#include "lock/holder.h"

#include "base/duration.h"
#include "base/shown_time.h"
#include "base/text.h"
#include "lock/requests.h"
#include "lock/schema.h"

#include <algorithm>
#include <charconv>
#include <cstddef>

namespace rlock {
namespace {

constexpr std::size_t longest_host_or_user = 256;  // of a host or a user: HOST_NAME_MAX is 64, LOGIN_NAME_MAX 256

std::string escape(std::string_view value)
{
  constexpr char hex[] = "0123456789ABCDEF";
  std::string out;
  for (const char c : value) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == '%' || byte == 0x7f) {
      out += {'%', hex[byte >> 4], hex[byte & 15]};
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

std::string digits(Millis duration) { return std::to_string(duration.count()); }

std::int64_t number(std::string_view text)
{
  std::int64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

// Another version of rlock, or another program, may have written secrets or a text of any length.
std::string shown_text(std::string_view value, std::size_t most) { return std::string(cut_to(unescape(value), most)); }

std::string flag(bool value) { return value ? "1" : "0"; }

Pool& pool_of(HolderInfo& info) { return info.pool ? *info.pool : info.pool.emplace(); }

// No name has a comma in it.
std::size_t count_names(std::string_view names) { return static_cast<std::size_t>(std::ranges::count(names, ',')) + 1; }

// A pool that a record tells in part, or whose parts do not agree, is none.
void drop_damaged_pool(HolderInfo& info)
{
  const bool is_whole = info.pool && !info.pool->key.empty() && info.pool->size >= 1 &&
                        info.pool->size <= most_shards &&
                        (info.pool->names.value_or("").empty() || count_names(*info.pool->names) == info.pool->size);
  if (!is_whole) {
    info.pool.reset();
  }
}

void set_field(HolderInfo& info, HolderField field, std::string_view value)
{
  switch (field) {
    case HolderField::history: info.history = Millis{number(value)}; break;
    case HolderField::host: info.host = shown_text(value, longest_host_or_user); break;
    case HolderField::pid: info.pid = number(value); break;
    case HolderField::user: info.user = shown_text(value, longest_host_or_user); break;
    case HolderField::sudo_user: info.sudo_user = shown_text(value, longest_host_or_user); break;
    case HolderField::command: info.command = cut_to(without_secrets(unescape(value)), longest_command); break;
    case HolderField::label: info.label = shown_text(value, longest_label); break;
    case HolderField::since: info.since_ms = number(value); break;
    case HolderField::lease: info.lease = Millis{number(value)}; break;
    case HolderField::kill_after:
      info.kill_after = std::clamp(Millis{number(value)}, Millis{0}, longest_duration);
      break;
    case HolderField::every: info.every = std::clamp(Millis{number(value)}, Millis{1}, longest_duration); break;
    case HolderField::freeze: info.freeze = shown_text(value, longest_label); break;
    case HolderField::pool: pool_of(info).key = unescape(value); break;
    case HolderField::shards:
      pool_of(info).size = static_cast<std::size_t>(std::max<std::int64_t>(number(value), 0));
      break;
    case HolderField::shard_names: pool_of(info).names = shown_text(value, longest_shard_names); break;
    case HolderField::latest: info.latest = value == flag(true); break;
    case HolderField::priority:
      info.priority = static_cast<int>(std::clamp<std::int64_t>(number(value), -most_priority, most_priority));
      break;
    case HolderField::over: info.over = value == flag(true); break;
    case HolderField::automatic: info.automatic = value == flag(true); break;
  }
}

// nullopt: the record leaves the field out.
std::optional<std::string> field_in(const HolderInfo& info, HolderField field)
{
  switch (field) {
    case HolderField::history: return info.history ? std::optional(digits(*info.history)) : std::nullopt;
    case HolderField::host: return escape(info.host);
    case HolderField::pid: return std::to_string(info.pid);
    case HolderField::user: return escape(info.user);
    case HolderField::sudo_user: return !info.sudo_user.empty() ? std::optional(escape(info.sudo_user)) : std::nullopt;
    case HolderField::command: return escape(cut_to(info.command, longest_command));
    case HolderField::label: return escape(cut_to(info.label, longest_label));
    case HolderField::since: return std::to_string(info.since_ms);
    case HolderField::lease: return digits(info.lease);
    case HolderField::kill_after:
      return info.kill_after != default_kill_after ? std::optional(digits(info.kill_after)) : std::nullopt;
    case HolderField::every: return info.every ? std::optional(digits(*info.every)) : std::nullopt;
    case HolderField::freeze:
      return !info.freeze.empty() ? std::optional(escape(cut_to(info.freeze, longest_label))) : std::nullopt;
    case HolderField::pool: return info.pool ? std::optional(escape(info.pool->key)) : std::nullopt;
    case HolderField::shards: return info.pool ? std::optional(std::to_string(info.pool->size)) : std::nullopt;
    case HolderField::shard_names:
      return info.pool && info.pool->names ? std::optional(escape(*info.pool->names)) : std::nullopt;
    case HolderField::latest: return info.latest ? std::optional(flag(true)) : std::nullopt;
    case HolderField::priority: return info.priority != 0 ? std::optional(std::to_string(info.priority)) : std::nullopt;
    case HolderField::over: return info.over ? std::optional(flag(true)) : std::nullopt;
    case HolderField::automatic: return flag(info.automatic);
  }
  return std::nullopt;
}

}  // namespace

std::string encode(const HolderInfo& info)
{
  std::string text;
  for (const auto& [field, word] : holder_fields) {
    if (const auto value = field_in(info, field)) {
      text += text.empty() ? "" : "\n";
      text += word;
      text += "=" + *value;
    }
  }
  return text;
}

std::optional<HolderInfo> decode_holder(std::string_view text)
{
  HolderInfo info;
  bool valid = false;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    const auto equals = line.find('=');
    const auto field = find_word(holder_fields, line.substr(0, equals));
    if (field && equals != std::string_view::npos) {
      set_field(info, *field, line.substr(equals + 1));
      valid = true;
    }
  }
  drop_damaged_pool(info);
  return valid ? std::optional{info} : std::nullopt;
}

std::string user_text(const HolderInfo& info)
{
  return (info.sudo_user.empty() ? "" : info.sudo_user + " as ") + info.user;
}

std::string holder_text(const Owner& owner, const std::optional<HolderInfo>& info)
{
  return info ? printable(user_text(*info) + "@" + info->host) + " (pid " + std::to_string(info->pid) + ")"
              : printable(owner.text());
}

std::int64_t end_of_freeze_ms(const HolderInfo& freeze, std::optional<Millis> left, std::int64_t now_ms)
{
  constexpr std::int64_t second = 1000;
  const std::int64_t end_ms = left ? now_ms + left->count() : freeze.since_ms + freeze.lease.count();
  return (end_ms + second / 2) / second * second;
}

std::string freeze_text(const HolderInfo& freeze, std::optional<Millis> left, std::int64_t now_ms)
{
  return "frozen by " + printable(user_text(freeze) + "@" + freeze.host) + " until " +
         shown_minute(end_of_freeze_ms(freeze, left, now_ms), now_ms).value_or("-") + ": " + printable(freeze.freeze);
}

const HolderInfo* freeze_of(const Holder& holder)
{
  return holder.info && !holder.info->freeze.empty() ? &*holder.info : nullptr;
}

const HolderInfo* freeze_of(const std::optional<Holder>& holder) { return holder ? freeze_of(*holder) : nullptr; }

const HolderInfo* freeze_of(const LockState& state)
{
  return state.held() ? freeze_of(state.holders.front()) : nullptr;
}

std::string job_text(const HolderInfo& info)
{
  if (!info.freeze.empty()) {
    return "freeze: " + printable(info.freeze);
  }
  const std::string verb = info.over ? "kept after " : "running ";
  const std::string command = info.command.empty() ? "" : verb + without_controls(info.command);
  const std::string label = info.label.empty() ? "" : "[" + printable(info.label) + "]";
  return command + (command.empty() || label.empty() ? "" : " ") + label;
}

std::string describe(const Holder& holder)
{
  const std::string job = holder.info ? job_text(*holder.info) : "";
  return holder_text(holder.owner, holder.info) + (job.empty() ? "" : ", ") + job;
}

namespace {

std::string text_of_cause(const NotHeld& lost)
{
  switch (lost.cause) {
    case LossCause::gone: break;
    case LossCause::held: return "now held by " + lost.detail;
    case LossCause::other_content: return "the key now holds " + printable(lost.detail);
    case LossCause::revoked: return "it was revoked, and ends with its ttl";
    case LossCause::hold_released: return "it was released, and what is left is another hold of its owner";
    case LossCause::released_with_token: return "it was released with its token";
    case LossCause::server_lost_data:
      return "the server no longer has its data (it was restarted without it, or flushed, or a fail-over lost it)";
    case LossCause::ended_before_job: return "it ended before its job";
  }
  return "expired or deleted";
}

}  // namespace

std::string text_of(const NotHeld& lost)
{
  return lost.forced ? forced_by + printable(lost.forced->by) : text_of_cause(lost) + lost.besides;
}

}  // namespace rlock
