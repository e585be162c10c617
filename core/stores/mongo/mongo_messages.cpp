// SPDX-License-Identifier: Apache-2.0
#include "stores/mongo/mongo_messages.h"

#include <algorithm>
#include <string_view>
#include "base/hex.h"
#include "base/text.h"
#include "stores/mongo/mongo_layout.h"

namespace rlock::mongo {
namespace {

constexpr Millis longest_look{1000};
constexpr int most_tries = 3;

std::int64_t milliseconds(Instant at) { return std::chrono::duration_cast<Millis>(at.time_since_epoch()).count(); }

}  // namespace

Document write_command(const char* command, const Connection& connection, const char* list,
                       const std::vector<Document>& statements, const CallLimits& limit)
{
  const auto left = std::chrono::ceil<Millis>(limit.deadline - connection.clock().now()).count();
  Document all;
  all.add(command, connection.spec().collection).add(list, statements);
  all.add("writeConcern",
          Document()
              .add("w", "majority")
              .add_flag("j", true)
              .add_small("wtimeout", static_cast<std::int32_t>(std::clamp<std::int64_t>(left, 1, 3'600'000))));
  return all;
}

Error unfit_document(const Connection& connection, std::string_view name)
{
  const std::string document = connection.where() + ": the document " + printable(name);
  return {ErrorCode::config, connection.spec().is_shared
                                 ? document + " is no lock of ShedLock (name its collection)"
                                 : document + " is no record of rlock (use another collection, or table=" +
                                       connection.spec().collection + " if it is that of ShedLock)"};
}

PollingSource::PollingSource(const ConnectionSpec& spec, const Clock& clock, std::unique_ptr<Rng> rng)
    : LookingSource(clock),
      m_connection(spec, clock),
      m_rng(std::move(rng)),
      m_path("listeners.l" + hex_of(m_rng->next()))
{
}

PollingSource::~PollingSource()
{
  std::vector<Document> statements;
  for (const auto& [name, lock] : m_locks) {
    Document statement;
    statement.add("q", Document().add("_id", name));
    statement.add("u", Document().add("$unset", Document().add(m_path, "")));
    statements.push_back(std::move(statement));
  }
  m_connection.tell(Document().add("update", m_connection.spec().collection).add("updates", statements));
}

// Another client may make the document at the same moment, and a document without a record is not rlock's.
Result<Done> PollingSource::register_at(const std::vector<std::string>& names, const CallLimits& limit)
{
  ASSIGN_OR_RETURN(const auto server, m_connection.hello(limit));
  m_ahead_ms = server.time_ms - milliseconds(clock().now());
  std::vector<Document> statements;
  for (const std::string& name : names) {
    Document update;
    update.add("$set", Document()
                           .add("version", static_cast<std::int64_t>(m_rng->next()))
                           .add(m_path + ".channels", m_locks[name].channels)
                           .add_time(m_path + ".seen", server.time_ms));
    Document made;
    made.add_binary("record", "");
    if (m_connection.spec().is_shared) {
      add_shared_face({}, nullptr, server.time_ms, made);
    }
    update.add("$setOnInsert", made);
    const char* const proof = m_connection.spec().is_shared ? "lockedBy" : "record";
    Document statement;
    statement.add("q", Document().add("_id", name).add(proof, Document().add_flag("$exists", true)));
    statement.add("u", update).add_flag("upsert", true);
    statements.push_back(std::move(statement));
  }
  for (int tries = 1;; ++tries) {
    const auto done = m_connection.ask(write_command("update", m_connection, "updates", statements, limit), limit);
    if (done) {
      m_unregistered.clear();
      return Done{};
    }
    if (m_connection.server_error().code != duplicate_key) {
      return done.error();
    }
    if (tries == most_tries) {
      return unfit_document(m_connection, names.front());
    }
  }
}

Result<Done> PollingSource::add(std::span<const LockChannel> channels, const CallLimits& limit)
{
  std::vector<std::string> names;
  for (const LockChannel& each : channels) {
    const std::string name(each.lock);
    m_locks[name].channels.emplace_back(each.channel);
    if (std::ranges::find(names, name) == names.end()) {
      names.push_back(name);
    }
  }
  RETURN_IF_ERROR(read(limit));
  RETURN_IF_ERROR(register_at(names, limit));
  m_quiet_since = clock().now();
  m_next_beat = m_quiet_since + listener_beat;
  look_after(pause_until_look());
  return Done{};
}

// Takes what came since the last look. Returns whether there was a message.
bool PollingSource::take_messages(Lock& lock, const Fields& document)
{
  std::set<std::int64_t> present;
  bool has_heard = false;
  for (const Field& each : document.inner("messages").all()) {
    const Fields message = each.inner();
    present.insert(message.number("id"));
    const std::string channel = message.text("channel");
    if (lock.is_seeded && !lock.known.contains(message.number("id")) &&
        std::ranges::find(lock.channels, channel) != lock.channels.end()) {
      hear({channel, message.text("text")});
      has_heard = true;
    }
  }
  lock.known = std::move(present);
  return has_heard;
}

// Nullopt: this listener is not among the listeners of the lock. A process that is over leaves its listener behind.
std::optional<ListenerPlace> PollingSource::place_in(const Fields& document) const
{
  const std::string_view own = std::string_view(m_path).substr(m_path.find('.') + 1);
  const std::int64_t oldest = milliseconds(clock().now()) + m_ahead_ms - listener_silence.count();
  std::optional<ListenerPlace> found;
  std::int64_t others = 0;
  for (const Field& each : document.inner("listeners").all()) {
    if (each.key() == own) {
      found = ListenerPlace{.place = others + 1, .is_alone = true};
      continue;
    }
    const auto seen = each.inner().find("seen");
    others += seen && seen->time_ms().value_or(0) >= oldest ? 1 : 0;
  }
  if (found) {
    found->is_alone = others == 0;
  }
  return found;
}

Result<Done> PollingSource::read(const CallLimits& limit)
{
  std::vector<std::string> names;
  for (const auto& [name, lock] : m_locks) {
    names.push_back(name);
  }
  Document filter;
  if (names.size() == 1) {
    filter.add("_id", names.front());
  } else {
    filter.add("_id", Document().add("$in", names));
  }
  Document command;
  command.add("find", m_connection.spec().collection).add("filter", filter);
  command.add("projection", Document().add_small("messages", 1).add_small("listeners", 1));
  const Instant begun = clock().now();
  const auto answer = m_connection.ask(command.add_small("batchSize", 1000).add_flag("singleBatch", true), limit);
  m_look_time = std::chrono::duration_cast<Millis>(clock().now() - begun);
  if (!answer) {
    return answer.error();
  }
  m_unregistered = names;
  std::optional<ListenerPlace> first;
  for (const Fields& document : answer->batch()) {
    const auto lock = m_locks.find(document.text("_id"));
    if (lock != m_locks.end() && take_messages(lock->second, document)) {
      m_quiet_since = clock().now();
    }
    if (const auto place = place_in(document)) {
      std::erase(m_unregistered, document.text("_id"));
      first = first && first->place <= place->place ? first : place;
    }
  }
  m_place = first.value_or(ListenerPlace{});
  for (auto& [name, lock] : m_locks) {
    lock.is_seeded = true;
  }
  return Done{};
}

// Says that this listener lives, at the time that the server must have now. If its clock was set meanwhile, this listener may count
// as dead; then it finds that it is not registered any more. A document that has lost the listener gets no new one by a beat.
Result<Done> PollingSource::beat(const CallLimits& limit)
{
  const std::int64_t now_ms = milliseconds(clock().now()) + m_ahead_ms;
  std::vector<Document> statements;
  for (const auto& [name, lock] : m_locks) {
    Document statement;
    statement.add("q", Document().add("_id", name).add(m_path + ".seen", Document().add_flag("$exists", true)));
    statement.add("u", Document().add("$set", Document().add_time(m_path + ".seen", now_ms)));
    statements.push_back(std::move(statement));
  }
  const auto done =
      m_connection.ask(Document().add("update", m_connection.spec().collection).add("updates", statements), limit);
  m_next_beat = clock().now() + listener_beat;
  return done ? Result(Done{}) : Result<Done>(done.error());
}

Result<Millis> PollingSource::look(const CallLimits& limit)
{
  const CallLimits each{clock().now() + longest_look, limit.stop};
  if (clock().now() >= m_next_beat) {
    RETURN_IF_ERROR(beat(each));
  }
  RETURN_IF_ERROR(read(each));
  if (!m_unregistered.empty()) {
    RETURN_IF_ERROR(register_at(m_unregistered, each));
  }
  return pause_until_look();
}

Millis PollingSource::pause_until_look() const
{
  const auto quiet = std::chrono::duration_cast<Millis>(clock().now() - m_quiet_since);
  return pause_between_looks(quiet, m_place, m_look_time);
}

}  // namespace rlock::mongo
