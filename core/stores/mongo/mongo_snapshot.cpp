// SPDX-License-Identifier: Apache-2.0
#include "stores/mongo/mongo_snapshot.h"

#include <algorithm>
#include <utility>
#include "engine/shared_table.h"
#include "stores/mongo/mongo_layout.h"

namespace rlock::mongo {

using record::Snapshot;

bool take_record(const Fields& document, Snapshot& state)
{
  const auto version = document.find("version");
  const auto bytes = document.find("record");
  if (!version || !version->integer() || !bytes || !bytes->binary()) {
    return false;
  }
  state.version = std::to_string(*version->integer());
  state.bytes = *bytes->binary();
  return true;
}

bool take_shared(const Fields& document, Snapshot& state)
{
  const auto version = document.find("version");
  const auto bytes = document.find("record");
  state.face = shared_face_in(document);
  if (!state.face || (version && !version->integer()) || (bytes && !bytes->binary())) {
    return false;
  }
  state.version = record::SharedVersion{version ? std::to_string(*version->integer()) : std::string(record::no_record),
                                        state.face->until_us, state.face->holder}
                      .text();
  state.bytes = bytes ? *bytes->binary() : "";
  return true;
}

std::vector<Document> documents_of(const std::vector<StoredMessage>& messages)
{
  std::vector<Document> documents;
  for (const StoredMessage& each : messages) {
    Document document;
    document.add("id", each.id).add("channel", each.message.channel).add("text", each.message.text);
    documents.push_back(std::move(document.add_time("at", each.at_ms)));
  }
  return documents;
}

Seen seen_in(const Fields& document, Snapshot& state)
{
  Seen seen{.name = {},
            .version = state.version,
            .time_ms = state.time_us / 1000,
            .at = {},
            .messages = {},
            .channels = {},
            .dead_listeners = {}};
  for (const Field& each : document.inner("listeners").all()) {
    const Fields listener = each.inner();
    const auto field = listener.find("seen");
    if (!field || field->time_ms().value_or(0) + listener_life.count() < seen.time_ms) {
      seen.dead_listeners.push_back(each.key());
      continue;
    }
    for (const Field& channel : listener.inner("channels").all()) {
      state.listeners.push_back(channel.text().value_or(""));
    }
  }
  std::ranges::sort(state.listeners);
  seen.channels = state.listeners;
  for (const Field& each : document.inner("messages").all()) {
    const Fields message = each.inner();
    const auto at = message.find("at");
    seen.messages.push_back({.id = message.number("id"),
                             .message = {message.text("channel"), message.text("text")},
                             .at_ms = at ? at->time_ms().value_or(0) : 0});
  }
  return seen;
}

}  // namespace rlock::mongo
