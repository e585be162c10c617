// SPDX-License-Identifier: Apache-2.0
#include "stores/mongo/mongo_layout.h"

#include <algorithm>
#include <utility>
#include "base/text.h"
#include "engine/shared_table.h"

namespace rlock::mongo {
namespace {

using record::Face;

std::string event_key(std::int64_t id) { return "e" + std::to_string(id); }

// As text for people who look at the store, where it is text.
void add_event(Document& document, const std::string& key, const std::string& entry)
{
  if (is_utf8(entry)) {
    document.add(key, entry);
  } else {
    document.add_binary(key, entry);
  }
}

}  // namespace

Events events_in(const Fields& document)
{
  Events events;
  for (const Field& each : document.inner("events").all()) {
    const std::string key = each.key();
    const std::int64_t id = leading_number(std::string_view(key).substr(std::min<std::size_t>(key.size(), 1)));
    const auto text = each.text();
    events[id] = text ? *text : each.binary().value_or("");
  }
  return events;
}

Document events_document(const Events& events)
{
  Document document;
  for (const auto& [id, entry] : events) {
    add_event(document, event_key(id), entry);
  }
  return document;
}

void set_event(Document& set, std::int64_t id, const std::string& entry)
{
  add_event(set, "events." + event_key(id), entry);
}

void add_face(const Face& face, Document& set, Document& unset)
{
  if (face.holder.empty()) {
    unset.add("locked_by", "");
  } else {
    set.add("locked_by", face.holder);
  }
  for (const auto& [key, micros] : {std::pair{"lock_until", face.until_us}, std::pair{"forget_at", face.forget_us}}) {
    if (micros == 0) {
      unset.add(key, "");
    } else {
      set.add_time(key, micros / 1000);
    }
  }
}

// _id stands at the top: FerretDB does not see it inside of $and.
Document filter_of(std::string_view name, const record::Version& version, bool is_shared)
{
  Document filter;
  filter.add("_id", name);
  if (!is_shared) {
    filter.add("version", static_cast<std::int64_t>(std::stoll(version)));
    return filter;
  }
  const auto seen = record::SharedVersion::of(version);
  if (seen.number == record::no_record) {
    filter.add("version", Document().add_flag("$exists", false));
  } else {
    filter.add("version", static_cast<std::int64_t>(std::stoll(seen.number)));
  }
  filter.add_time("lockUntil", seen.until_us / 1000).add("lockedBy", seen.holder);
  return filter;
}

std::optional<Face> shared_face_in(const Fields& document)
{
  const auto until = document.find("lockUntil");
  const auto holder = document.find("lockedBy");
  if (!until || !until->time_ms() || !holder || !holder->text()) {
    return std::nullopt;
  }
  return Face{.holder = *holder->text(), .until_us = *until->time_ms() * 1000};
}

void add_shared_face(const Face& face, const Face* seen, std::int64_t time_ms, Document& set)
{
  const std::int64_t seen_until = seen == nullptr ? time_ms : seen->until_us / 1000;
  const bool is_taken =
      !face.holder.empty() && (seen == nullptr || seen->holder != face.holder || seen_until < time_ms);
  if (seen == nullptr || !face.holder.empty()) {
    set.add("lockedBy", face.holder);
  }
  if (seen == nullptr || is_taken) {
    set.add_time("lockedAt", time_ms);
  }
  set.add_time("lockUntil", face.until_us == 0 ? std::min(seen_until, time_ms) : face.until_us / 1000);
}

}  // namespace rlock::mongo
