// SPDX-License-Identifier: Apache-2.0
#include "engine/lock_keys.h"

#include "engine/script_call.h"

namespace rlock {
namespace {

bool has_tag(const std::string& name) { return name.find('{') != std::string::npos; }

// The name that Redisson gives to a key that belongs to an object.
std::string tagged(std::string_view prefix, const std::string& name)
{
  return std::string(prefix) + (has_tag(name) ? name : "{" + name + "}");
}

constexpr std::string_view tagged_infix = "tagged:";

std::string own_prefix(std::string_view part) { return std::string(own_key_prefix) + std::string(part) + ":"; }

std::string own(std::string_view part, const std::string& name)
{
  return own_prefix(part) + (has_tag(name) ? std::string(tagged_infix) + name : "{" + name + "}");
}

std::string suffixed(const std::string& name, std::string_view suffix)
{
  return (has_tag(name) ? name : "{" + name + "}") + ":" + std::string(suffix);
}

// The channel of releases; empty: no client announces a release.
std::string release_channel(const std::string& name, const LockKind& kind)
{
  const std::string_view prefix = scripted_kind(kind).release_channel;
  return prefix.empty() ? "" : tagged(prefix, name);
}

}  // namespace

LockKeys::LockKeys(const LockName& name, const LockKind& kind)
    : calls::Keys{.lock = name.text(),
                  .fence = tagged(fence_key_prefix, name.text()),
                  .holder = own("holder", name.text()),
                  .force = own("force", name.text()),
                  .events = own("events", name.text()),
                  .queue = own("queue" + std::string(scripted_kind(kind).queue_suffix), name.text()),
                  .waiters = own("waiters" + std::string(scripted_kind(kind).queue_suffix), name.text()),
                  .reserved = own("reserved", name.text()),
                  .fair = tagged("redisson_lock_queue:", name.text()),
                  .second = suffixed(name.text(), "timeout"),
                  .done = own("done", name.text())},
      runs(own("runs", lock)),
      reads(suffixed(lock, "")),
      own_number(own("permits", lock)),
      channel(release_channel(lock, kind)),
      taken_channel(own("taken", lock)),
      owner_channel(own("owner", lock) + ":")
{
}

std::array<std::string, 2> globs_beside(std::string_view part, std::string_view glob)
{
  const std::string prefix = own_prefix(part);
  return {prefix + "{" + std::string(glob) + "}", prefix + std::string(tagged_infix) + std::string(glob)};
}

std::string lock_beside(std::string_view part, std::string_view key)
{
  const std::string prefix = own_prefix(part);
  if (!key.starts_with(prefix)) {
    return {};
  }
  key.remove_prefix(prefix.size());
  if (key.starts_with(tagged_infix)) {
    return std::string(key.substr(tagged_infix.size()));
  }
  const bool is_wrapped = key.size() > 2 && key.front() == '{' && key.back() == '}';
  return std::string(is_wrapped ? key.substr(1, key.size() - 2) : "");
}

}  // namespace rlock
