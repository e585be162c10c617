// SPDX-License-Identifier: Apache-2.0
#include "stores/zookeeper/zookeeper_layout.h"

#include <algorithm>
#include "base/text.h"
#include "net/url_parts.h"
#include "stores/zookeeper/jute.h"

namespace rlock::zookeeper {
namespace {

constexpr std::int32_t record_format = 1;
constexpr std::size_t id_digits = 16;
constexpr char name_of_lock = '~';  // in the name of a listener; node_name() writes no such byte

bool is_plain(char c)
{
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("-_.:@=+,{}[]()").find(c) != std::string_view::npos;
}

}  // namespace

std::string Layout::record(std::string_view name) const { return locks() + "/" + node_name(name); }

std::string Layout::events(std::string_view name) const { return all_events() + "/" + node_name(name); }

// As wide as the greatest number, so that the order of the names is that of the numbers.
std::string Layout::event(std::string_view name, std::int64_t id) const
{
  constexpr std::size_t width = 19;
  const std::string number = std::to_string(id);
  return events(name) + "/" + std::string(width - std::min(width, number.size()), '0') + number;
}

std::vector<std::string> Layout::directories() const
{
  std::vector<std::string> all;
  for (auto slash = m_root.find('/', 1); slash != std::string::npos; slash = m_root.find('/', slash + 1)) {
    all.push_back(m_root.substr(0, slash));
  }
  all.insert(all.end(), {m_root, deletions(), locks(), all_events(), presences()});
  return all;
}

bool is_path(std::string_view path)
{
  if (std::ranges::any_of(path, is_control) || path == "/zookeeper" || path.starts_with("/zookeeper/")) {
    return false;
  }
  while (!path.empty()) {
    path.remove_prefix(1);
    const std::string_view part = path.substr(0, path.find('/'));
    if (part.empty() || part == "." || part == "..") {
      return false;
    }
    path.remove_prefix(part.size());
  }
  return true;
}

std::string node_name(std::string_view text)
{
  constexpr std::string_view digits = "0123456789ABCDEF";
  std::string name;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool is_kept = is_plain(c) && !(c == '.' && name.empty());  // "." and ".." are no names
    name += is_kept ? std::string(1, c) : std::string{'%', digits[byte >> 4], digits[byte & 15]};
  }
  return name;
}

std::optional<std::string> text_of_node(std::string_view name)
{
  auto text = percent_decoded(name);
  return text && node_name(*text) == name ? text : std::nullopt;
}

// Most channels contain the name of their lock, which need not stand there twice.
std::string listener_name(std::string_view id, std::string_view lock, std::string_view channel)
{
  const auto at = lock.empty() ? std::string_view::npos : channel.find(lock);
  const std::string head = std::string(id) + "-";
  return at == std::string_view::npos
             ? head + node_name(channel)
             : head + node_name(channel.substr(0, at)) + name_of_lock + node_name(channel.substr(at + lock.size()));
}

std::optional<std::string> channel_of_listener(std::string_view name, std::string_view lock)
{
  if (name.size() < id_digits + 1 || name[id_digits] != '-') {
    return std::nullopt;
  }
  name.remove_prefix(id_digits + 1);
  const auto at = name.find(name_of_lock);
  const auto head = text_of_node(name.substr(0, at));
  const auto tail = text_of_node(at == std::string_view::npos ? "" : name.substr(at + 1));
  if (!head || !tail) {
    return std::nullopt;
  }
  return at == std::string_view::npos ? *head : *head + std::string(lock) + *tail;
}

std::string encoded(std::string_view bytes, const record::Face& face)
{
  JuteWriter data;
  data.small(record_format).text(face.holder).number(face.until_us).number(face.forget_us).append(bytes);
  return data.bytes();
}

std::optional<RecordData> record_data(std::string_view data)
{
  JuteReader reader(data);
  RecordData record;
  const std::int32_t format = reader.small();
  record.face.holder = reader.text();
  record.face.until_us = reader.number();
  record.face.forget_us = reader.number();
  if (!reader.is_good() || format != record_format) {
    return std::nullopt;
  }
  record.bytes = reader.rest();
  return record;
}

std::string encoded(const Inbox& inbox)
{
  JuteWriter data;
  data.number(inbox.last).small(static_cast<std::int32_t>(inbox.texts.size()));
  for (const std::string& text : inbox.texts) {
    data.text(text);
  }
  return data.bytes();
}

namespace {

// Another client may have written any number.
bool is_possible(const Inbox& inbox)
{
  constexpr std::int64_t most_messages = std::int64_t{1} << 53;
  return inbox.last >= static_cast<std::int64_t>(inbox.texts.size()) && inbox.last <= most_messages;
}

}  // namespace

Inbox inbox_of(std::string_view data)
{
  JuteReader reader(data);
  Inbox inbox;
  inbox.last = reader.number();
  constexpr std::size_t least = 4;
  for (std::int32_t left = reader.count(least); left > 0; --left) {
    inbox.texts.push_back(reader.text());
  }
  return reader.is_good() && is_possible(inbox) ? inbox : Inbox{};
}

}  // namespace rlock::zookeeper
