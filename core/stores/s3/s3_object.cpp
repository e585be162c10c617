// SPDX-License-Identifier: Apache-2.0
#include "stores/s3/s3_object.h"

#include <algorithm>
#include <charconv>
#include <utility>
#include "base/hex.h"

namespace rlock::s3 {
namespace {

// The first line has the version of the format. A field is its letter, its size in decimal digits, a colon and its bytes.
constexpr std::string_view first_line = "rlock 1\n";

enum class Tag : char {
  number = 'N',
  time = 'T',
  record = 'R',
  holder = 'H',
  until = 'U',
  event_id = 'E',
  event_text = 'e',
  listener = 'L',  // begins a listener; `seen` and `listens` are of the last one
  seen = 's',
  listens = 'c',
  message = 'M',  // begins a message
  sent_at = 'a',
  channel = 'h',
  text = 'x',
};

void put(std::string& bytes, Tag tag, std::string_view field)
{
  bytes += static_cast<char>(tag);
  bytes.append(std::to_string(field.size())).append(":").append(field);
}

void put(std::string& bytes, Tag tag, std::int64_t number)
{
  put(bytes, tag, std::string_view(std::to_string(number)));
}

template <typename Number>
std::optional<Number> number_in(std::string_view text)
{
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} && end == text.data() + text.size() ? std::optional(number) : std::nullopt;
}

struct ObjectField {
  Tag tag;
  std::string_view bytes;
};

// Takes the first field off the bytes.
std::optional<ObjectField> take_field(std::string_view& bytes)
{
  const auto colon = bytes.find(':');
  if (colon == std::string_view::npos) {
    return std::nullopt;
  }
  const auto size = number_in<std::size_t>(bytes.substr(1, colon - 1));
  if (!size || *size > bytes.size() - colon - 1) {
    return std::nullopt;
  }
  const ObjectField field{static_cast<Tag>(bytes.front()), bytes.substr(colon + 1, *size)};
  bytes.remove_prefix(colon + 1 + *size);
  return field;
}

// Of the entry that the field `begins`; false: no entry has begun.
template <typename Entry, typename Take>
bool take_of_last(std::vector<Entry>& entries, Take take)
{
  if (!entries.empty()) {
    take(entries.back());
  }
  return !entries.empty();
}

// False: the field has no place in an object.
bool take(const ObjectField& field, LockObject& object, std::int64_t& event_id)
{
  const std::int64_t number = number_in<std::int64_t>(field.bytes).value_or(0);
  const std::string text(field.bytes);
  switch (field.tag) {
    case Tag::number: return true;
    case Tag::time: object.time_us = number; return true;
    case Tag::record: object.record = text; return true;
    case Tag::holder: object.face.holder = text; return true;
    case Tag::until: object.face.until_us = number; return true;
    case Tag::event_id: event_id = number; return true;
    case Tag::event_text: object.events[event_id] = text; return true;
    case Tag::listener: object.listeners.push_back({.id = text, .seen_us = 0, .channels = {}}); return true;
    case Tag::seen: return take_of_last(object.listeners, [&](StoredListener& last) { last.seen_us = number; });
    case Tag::listens:
      return take_of_last(object.listeners, [&](StoredListener& last) { last.channels.push_back(text); });
    case Tag::message: object.messages.push_back({.id = text, .at_us = 0, .message = {}}); return true;
    case Tag::sent_at: return take_of_last(object.messages, [&](StoredMessage& last) { last.at_us = number; });
    case Tag::channel: return take_of_last(object.messages, [&](StoredMessage& last) { last.message.channel = text; });
    case Tag::text: return take_of_last(object.messages, [&](StoredMessage& last) { last.message.text = text; });
  }
  return false;
}

bool is_alive(const StoredListener& listener, std::int64_t now_us)
{
  return listener.seen_us + std::chrono::microseconds(listener_life).count() >= now_us;
}

}  // namespace

std::string bytes_of(const LockObject& object, std::uint64_t number)
{
  std::string bytes(first_line);
  put(bytes, Tag::number, hex_of(number));
  put(bytes, Tag::time, object.time_us);
  put(bytes, Tag::record, object.record);
  put(bytes, Tag::holder, object.face.holder);
  put(bytes, Tag::until, object.face.until_us);
  for (const auto& [id, entry] : object.events) {
    put(bytes, Tag::event_id, id);
    put(bytes, Tag::event_text, entry);
  }
  for (const StoredListener& each : object.listeners) {
    put(bytes, Tag::listener, each.id);
    put(bytes, Tag::seen, each.seen_us);
    for (const std::string& channel : each.channels) {
      put(bytes, Tag::listens, channel);
    }
  }
  for (const StoredMessage& each : object.messages) {
    put(bytes, Tag::message, each.id);
    put(bytes, Tag::sent_at, each.at_us);
    put(bytes, Tag::channel, each.message.channel);
    put(bytes, Tag::text, each.message.text);
  }
  return bytes;
}

std::optional<LockObject> object_in(std::string_view bytes)
{
  if (!bytes.starts_with(first_line)) {
    return std::nullopt;
  }
  bytes.remove_prefix(first_line.size());
  LockObject object;
  std::int64_t event_id = 0;
  while (!bytes.empty()) {
    const auto field = take_field(bytes);
    if (!field || !take(*field, object, event_id)) {
      return std::nullopt;
    }
  }
  return object;
}

void apply(const record::Change& change, std::int64_t now_us, LockObject& object, Rng& rng)
{
  object.time_us = std::max(object.time_us, now_us);
  object.record = change.bytes;
  object.face = change.face;
  if (change.log.first_kept) {
    object.events.erase(object.events.begin(), object.events.lower_bound(*change.log.first_kept));
  }
  if (change.log.last_kept) {
    object.events.erase(object.events.upper_bound(*change.log.last_kept), object.events.end());
  }
  for (const record::LoggedEvent& each : change.log.written) {
    object.events[each.id] = each.entry;
  }
  std::erase_if(object.listeners, [&](const StoredListener& each) { return !is_alive(each, now_us); });
  std::erase_if(object.messages, [&](const StoredMessage& each) {
    return each.at_us + std::chrono::microseconds(message_life).count() < now_us;
  });
  for (const Message& each : change.messages) {
    object.messages.push_back({.id = hex_of(rng.next()), .at_us = now_us, .message = each});
  }
}

std::vector<std::string> living_channels(const LockObject& object, std::int64_t now_us)
{
  std::vector<std::string> channels;
  for (const StoredListener& each : object.listeners) {
    if (is_alive(each, now_us)) {
      channels.insert(channels.end(), each.channels.begin(), each.channels.end());
    }
  }
  std::ranges::sort(channels);
  return channels;
}

}  // namespace rlock::s3
