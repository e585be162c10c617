// SPDX-License-Identifier: Apache-2.0
#include "redis/slot_map.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <string_view>
#include "redis/url.h"

namespace rlock {
namespace {

std::optional<unsigned> number_in(std::string_view text, unsigned max)
{
  unsigned number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole = error == std::errc{} && end == text.data() + text.size();
  return whole && number <= max ? std::optional(number) : std::nullopt;
}

// A node whose host name is unknown to the cluster has "?". nullopt: the text is no host.
std::optional<HostPort> named(std::string_view host, unsigned port, const HostPort& asked)
{
  if (host.empty() || host == "?") {
    return HostPort{.host = asked.host, .port = static_cast<std::uint16_t>(port)};
  }
  return is_host(host) ? std::optional(HostPort{.host = std::string(host), .port = static_cast<std::uint16_t>(port)})
                       : std::nullopt;
}

// Removes the first word and the blank after it from the text.
std::string_view take_word(std::string_view& text)
{
  const auto blank = std::min(text.find(' '), text.size());
  const std::string_view word = text.substr(0, blank);
  text.remove_prefix(std::min(blank + 1, text.size()));
  return word;
}

bool is_number(const Reply& reply, std::int64_t max)
{
  return reply.kind == Reply::Kind::integer && reply.integer >= 0 && reply.integer <= max;
}

// [host or nil, port, …]
std::optional<HostPort> node_in(const Reply& reply, const HostPort& asked)
{
  const bool complete = reply.elements.size() >= 2 && is_number(reply.elements[1], 65535);
  return complete ? named(reply.elements[0].text, static_cast<unsigned>(reply.elements[1].integer), asked)
                  : std::nullopt;
}

}  // namespace

std::optional<Redirection> redirection_in(const Reply& reply, const HostPort& asked)
{
  if (!reply.is_error()) {
    return std::nullopt;
  }
  std::string_view text = reply.text;
  const std::string_view code = take_word(text);
  if (code != "MOVED" && code != "ASK") {
    return std::nullopt;
  }
  const auto slot = number_in(take_word(text), slot_count - 1);
  const std::string_view to = take_word(text);
  const auto colon = to.rfind(':');  // an IPv6 address has more of them, and no brackets
  const auto port = colon == std::string_view::npos ? std::nullopt : number_in(to.substr(colon + 1), 65535);
  const auto node = port ? named(to.substr(0, colon), *port, asked) : std::nullopt;
  if (!slot || !node) {
    return std::nullopt;
  }
  return Redirection{
      .kind = code == "ASK" ? Redirection::Kind::ask : Redirection::Kind::moved, .slot = *slot, .to = *node};
}

SlotMap::SlotMap(const Reply& slots, const HostPort& asked)
{
  for (const Reply& range : slots.elements) {
    add(range, asked);
  }
}

// [first, last, master, replica, …]
void SlotMap::add(const Reply& range, const HostPort& asked)
{
  const auto& parts = range.elements;
  if (parts.size() < 3 || !is_number(parts[0], slot_count - 1) || !is_number(parts[1], slot_count - 1)) {
    return;
  }
  const auto master = node_in(parts[2], asked);
  if (!master) {
    return;
  }
  m_ranges.push_back({.first = static_cast<unsigned>(parts[0].integer),
                      .last = static_cast<unsigned>(parts[1].integer),
                      .owner = *master});
  for (std::size_t i = 2; i < parts.size(); ++i) {
    if (const auto node = node_in(parts[i], asked)) {
      add_node(*node);
    }
  }
}

void SlotMap::add_node(const HostPort& node)
{
  if (std::find(m_nodes.begin(), m_nodes.end(), node) == m_nodes.end()) {
    m_nodes.push_back(node);
  }
}

void SlotMap::moved(unsigned slot, const HostPort& to)
{
  m_moved[slot] = to;
  add_node(to);
}

std::optional<HostPort> SlotMap::owner(unsigned slot) const
{
  if (const auto moved = m_moved.find(slot); moved != m_moved.end()) {
    return moved->second;
  }
  const auto range = std::find_if(m_ranges.begin(), m_ranges.end(),
                                  [slot](const Range& each) { return each.first <= slot && slot <= each.last; });
  return range == m_ranges.end() ? std::nullopt : std::optional(range->owner);
}

std::set<HostPort> SlotMap::owners() const
{
  std::set<HostPort> owners;
  for (const Range& range : m_ranges) {
    owners.insert(range.owner);
  }
  return owners;
}

namespace {

std::string_view tag_of(std::string_view name)
{
  const auto open = name.find('{');
  const auto close = open == std::string_view::npos ? open : name.find('}', open);
  const bool has_tag = close != std::string_view::npos && close > open + 1;
  return has_tag ? name.substr(open + 1, close - open - 1) : name;
}

// CRC-16/XMODEM
std::uint16_t crc16(std::string_view bytes)
{
  constexpr std::uint32_t polynomial = 0x1021;
  std::uint32_t crc = 0;
  for (const char c : bytes) {
    crc ^= static_cast<std::uint32_t>(static_cast<unsigned char>(c)) << 8;
    for (int bit = 0; bit < 8; ++bit) {
      crc = (crc & 0x8000) != 0 ? (crc << 1) ^ polynomial : crc << 1;
    }
  }
  return static_cast<std::uint16_t>(crc);
}

}  // namespace

unsigned slot_of(std::string_view name) { return crc16(tag_of(name)) % slot_count; }

}  // namespace rlock
