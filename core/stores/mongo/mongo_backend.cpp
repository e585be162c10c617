// SPDX-License-Identifier: Apache-2.0
#include "stores/mongo/mongo_backend.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>
#include "base/text.h"
#include "engine/cleaning.h"
#include "engine/name_glob.h"
#include "engine/shared_table.h"
#include "stores/mongo/mongo_checks.h"
#include "stores/mongo/mongo_connection.h"
#include "stores/mongo/mongo_layout.h"
#include "stores/mongo/mongo_messages.h"
#include "stores/mongo/mongo_snapshot.h"

namespace rlock::mongo {
namespace {

using record::Backend;
using record::Change;
using record::Commit;
using record::Committed;
using record::Conflict;
using record::Face;
using record::SharedVersion;
using record::Snapshot;
using record::Version;

constexpr std::chrono::hours kept_after_end{1};  // a document that is of no use any more
constexpr std::size_t most_messages = 256;

// Adds the names of the locks in a batch whose hold is not over at that time.
void add_names(const Fields& cursor, std::int64_t time_ms, std::vector<std::string>& names)
{
  for (const char* batch : {"firstBatch", "nextBatch"}) {
    for (const Field& each : cursor.inner(batch).all()) {
      const Fields document = each.inner();
      const auto until = document.find("lock_until");
      if (!until || until->time_ms().value_or(0) > time_ms) {
        names.push_back(document.text("_id"));
      }
    }
  }
}

class MongoBackend final : public Backend {
 public:
  MongoBackend(ConnectionSpec spec, const Clock& clock, std::unique_ptr<Rng> rng)
      : m_clock(clock), m_rng(std::move(rng)), m_connection(std::move(spec), clock)
  {
  }

  Result<Snapshot> read(std::string_view name, const CallLimits& limit) override
  {
    m_seen.reset();
    ASSIGN_OR_RETURN(const auto server, m_connection.hello(limit));
    if (!is_utf8(name)) {
      return Error{ErrorCode::config, "the name of the lock " + printable(name) + " is no UTF-8, as MongoDB demands"};
    }
    const char* const concern = concern_of_read(server);
    ASSIGN_OR_RETURN(const auto answer,
                     find_one(Document().add("_id", name), Document().add_small("events", 0), concern, limit));
    const auto documents = answer.batch();
    Snapshot state{.version = {}, .bytes = {}, .time_us = server.time_ms * 1000, .listeners = {}};
    const Fields document = documents.empty() ? Fields() : documents.front();
    const bool is_record =
        documents.empty() || (is_shared() ? take_shared(document, state) : take_record(document, state));
    if (!is_record) {
      return unfit_document(m_connection, name);
    }
    m_seen = seen_in(document, state);
    m_seen->name = name;
    m_seen->at = m_clock.now();
    return state;
  }

  // Left out are locks without a document, because the first batch of an answer may not have all.
  Result<record::StatesAndLogs> read_each(std::span<const std::string_view> names, bool with_logs,
                                          const CallLimits& limit) override
  {
    m_seen.reset();
    ASSIGN_OR_RETURN(const auto server, m_connection.hello(limit));
    std::vector<std::string> ids(names.begin(), names.end());
    std::erase_if(ids, [](const std::string& name) { return !is_utf8(name); });
    Document projection;
    projection.add_small(with_logs ? "no_field" : "events", 0);
    Document command =
        find_command(Document().add("_id", Document().add("$in", ids)), projection, concern_of_read(server), limit);
    ASSIGN_OR_RETURN(const auto answer, m_connection.ask(command.add_flag("singleBatch", true), limit));
    record::StatesAndLogs states;
    for (const Fields& document : answer.batch()) {
      record::StateAndLog known{.state = {.version = {}, .bytes = {}, .time_us = server.time_ms * 1000}};
      if (!(is_shared() ? take_shared(document, known.state) : take_record(document, known.state))) {
        continue;
      }
      [[maybe_unused]] const Seen listeners = seen_in(document, known.state);
      if (with_logs) {
        known.log.emplace();
        for (auto& [id, entry] : events_in(document)) {
          known.log->push_back(std::move(entry));
        }
      }
      states.insert_or_assign(document.text("_id"), std::move(known));
    }
    return states;
  }

  Result<Commit> write_if(std::string_view name, const Version& version, const Change& change,
                          const CallLimits& limit) override
  {
    const auto next = static_cast<std::int64_t>(m_rng->next());
    auto done = is_seen(name, version, limit);
    if (done && *done) {
      done = version.empty() ? insert(name, next, change, limit) : update(name, version, next, change, limit);
    }
    if (!done || !*done) {
      m_seen.reset();
      const bool is_too_large =
          !done && std::ranges::find(too_large, m_connection.server_error().code) != too_large.end();
      return done           ? Commit{Conflict{}}
             : is_too_large ? Commit{record::TooLarge{done.error()}}
                            : Result<Commit>(done.error());
    }
    if (m_seen && !is_shared() && record::must_clean(*m_rng, change)) {
      clean(limit);
    }
    return Commit{Committed{m_seen->version}};
  }

  Result<std::unique_ptr<MessageSource>> listen(std::span<const LockChannel> channels, const CallLimits& limit) override
  {
    auto source = std::make_unique<PollingSource>(m_connection.spec(), m_clock, std::make_unique<SystemRng>());
    RETURN_IF_ERROR(source->add(channels, limit));
    return std::unique_ptr<MessageSource>(std::move(source));
  }

  Result<std::vector<std::string>> events(std::string_view name, const CallLimits& limit) override
  {
    ASSIGN_OR_RETURN(const auto answer,
                     find_one(Document().add("_id", name), Document().add_small("events", 1), "majority", limit));
    std::vector<std::string> entries;
    for (const Fields& document : answer.batch()) {
      for (auto& [id, entry] : events_in(document)) {
        entries.push_back(std::move(entry));
      }
    }
    return entries;
  }

  Result<std::vector<std::string>> list(std::string_view glob, Which which, const CallLimits& limit) override
  {
    ASSIGN_OR_RETURN(const auto server, m_connection.hello(limit));
    const char* const field = which == Which::held ? "locked_by" : "events";
    Document filter;
    if (is_shared() && which == Which::held) {
      filter.add("lockUntil", Document().add_time("$gt", server.time_ms));
    } else {
      filter.add(field, Document().add_flag("$exists", true));
    }
    std::vector<std::string> names;
    Document command = find_command(filter, Document().add_small("lock_until", 1), "majority", limit);
    for (;;) {
      ASSIGN_OR_RETURN(const auto answer, m_connection.ask(command, limit));
      const Fields cursor = answer.fields().inner("cursor");
      add_names(cursor, which == Which::held ? server.time_ms : 0, names);
      const std::int64_t id = cursor.number("id");
      if (id == 0) {
        break;
      }
      command = Document();
      command.add("getMore", id).add("collection", m_connection.spec().collection);
    }
    record::keep_matching(names, glob);
    std::ranges::sort(names);
    return names;
  }

  Result<Done> erase(std::string_view name, const CallLimits& limit) override
  {
    m_seen.reset();
    return remove(Document().add("_id", name), limit);
  }

  Result<std::vector<Finding>> check_server(const CallLimits& limit) override
  {
    return mongo::check_server(m_connection, limit);
  }

  [[nodiscard]] bool is_shared() const override { return m_connection.spec().is_shared; }
  void drop_connection() override
  {
    m_seen.reset();
    m_connection.drop();
  }

 private:
  // A deposed primary answers no linearizable read. A server that is alone knows none.
  static const char* concern_of_read(const ServerFacts& server)
  {
    return server.replica_set.empty() ? "local" : "linearizable";
  }

  // False: the document has another version.
  Result<bool> is_seen(std::string_view name, const Version& version, const CallLimits& limit)
  {
    if (m_seen && m_seen->name == name && m_seen->version == version) {
      return true;
    }
    const auto state = read(name, limit);
    return state ? Result(state->version == version) : Result<bool>(state.error());
  }

  [[nodiscard]] Version version_after(std::int64_t next, const Face& face) const
  {
    const std::string number = std::to_string(next);
    return is_shared() ? SharedVersion{number, face.until_us, face.holder}.text() : number;
  }

  Document find_command(const Document& filter, const Document& projection, const char* concern,
                        const CallLimits& limit) const
  {
    const auto left = std::chrono::ceil<Millis>(limit.deadline - m_clock.now()).count();
    Document command;
    command.add("find", m_connection.spec().collection).add("filter", filter).add("projection", projection);
    command.add("readConcern", Document().add("level", concern));
    command.add("maxTimeMS", std::max<std::int64_t>(left, 1));
    return command;
  }

  Result<Answer> find_one(const Document& filter, const Document& projection, const char* concern,
                          const CallLimits& limit)
  {
    Document command = find_command(filter, projection, concern, limit);
    return m_connection.ask(command.add_small("limit", 1).add_flag("singleBatch", true), limit);
  }

  // False: there is a document already.
  Result<bool> insert(std::string_view name, std::int64_t next, const Change& change, const CallLimits& limit)
  {
    Document document;
    Document unset;
    document.add("_id", name).add("version", next).add_binary("record", change.bytes);
    if (is_shared()) {
      add_shared_face(change.face, nullptr, m_seen->time_ms, document);
    } else {
      add_face(change.face, document, unset);
    }
    Events events;
    for (const record::LoggedEvent& event : change.log.written) {
      events[event.id] = event.entry;
    }
    if (!events.empty()) {
      document.add("events", events_document(events));
    }
    std::vector<Document> documents;
    documents.push_back(std::move(document));
    const auto done = m_connection.ask(write_command("insert", m_connection, "documents", documents, limit), limit);
    if (!done) {
      return m_connection.server_error().code == duplicate_key ? Result(false) : Result<bool>(done.error());
    }
    m_seen->version = version_after(next, change.face);
    return true;
  }

  // False: the document has another version, or is gone.
  Result<bool> update(std::string_view name, const Version& version, std::int64_t next, const Change& change,
                      const CallLimits& limit)
  {
    const Document filter = filter_of(name, version, is_shared());
    Document set;
    Document unset;
    set.add("version", next).add_binary("record", change.bytes);
    if (is_shared()) {
      const auto seen = SharedVersion::of(version);
      const Face face{.holder = seen.holder, .until_us = seen.until_us};
      add_shared_face(change.face, &face, m_seen->time_ms, set);
    } else {
      add_face(change.face, set, unset);
    }
    const auto has_log = add_log(change.log, filter, set, limit);
    if (!has_log || !*has_log) {
      return has_log;
    }
    const auto messages = add_messages(change.messages, set, unset);
    for (const std::string& key : m_seen->dead_listeners) {
      unset.add("listeners." + key, "");
    }
    Document change_of_document;
    change_of_document.add("$set", set);
    if (!unset.is_empty()) {
      change_of_document.add("$unset", unset);
    }
    std::vector<Document> statements(1);
    statements.front().add("q", filter).add("u", change_of_document);
    const auto done = m_connection.ask(write_command("update", m_connection, "updates", statements, limit), limit);
    if (!done || done->fields().number("n") != 1) {
      return done ? Result(false) : Result<bool>(done.error());
    }
    m_seen->version = version_after(next, change.face);
    m_seen->messages = messages;
    m_seen->dead_listeners.clear();
    return true;
  }

  // A commit that deletes entries reads the log, and writes the whole of it. False: the document has another version.
  Result<bool> add_log(const record::LogChange& log, const Document& filter, Document& set, const CallLimits& limit)
  {
    if (!log.first_kept && !log.last_kept) {
      for (const record::LoggedEvent& event : log.written) {
        set_event(set, event.id, event.entry);
      }
      return true;
    }
    const auto answer = find_one(filter, Document().add_small("events", 1), "local", limit);
    if (!answer || answer->batch().empty()) {
      return answer ? Result(false) : Result<bool>(answer.error());
    }
    Events events = events_in(answer->batch().front());
    if (log.first_kept) {
      events.erase(events.begin(), events.lower_bound(*log.first_kept));
    }
    if (log.last_kept) {
      events.erase(events.upper_bound(*log.last_kept), events.end());
    }
    for (const record::LoggedEvent& event : log.written) {
      events[event.id] = event.entry;
    }
    set.add("events", events_document(events));
    return true;
  }

  // Returns the messages that the document has after the commit: those that a listener may not have found yet.
  std::vector<StoredMessage> add_messages(std::span<const Message> sent, Document& set, Document& unset)
  {
    const std::int64_t now = m_seen->time_ms + std::chrono::duration_cast<Millis>(m_clock.now() - m_seen->at).count();
    std::vector<StoredMessage> messages = m_seen->messages;
    std::erase_if(messages, [&](const StoredMessage& each) {
      return each.at_ms + message_life.count() < now ||
             !std::ranges::binary_search(m_seen->channels, each.message.channel);
    });
    if (messages.empty() && sent.empty()) {
      if (!m_seen->messages.empty()) {
        unset.add("messages", "");
      }
      return messages;
    }
    for (const Message& each : sent) {
      messages.push_back({.id = static_cast<std::int64_t>(m_rng->next()), .message = each, .at_ms = now});
    }
    if (messages.size() > most_messages) {
      messages.erase(messages.begin(), messages.end() - most_messages);
    }
    const std::vector<Document> documents = documents_of(messages);
    set.add("messages", documents);
    return messages;
  }

  Result<Done> remove(const Document& filter, const CallLimits& limit)
  {
    std::vector<Document> statements(1);
    statements.front().add("q", filter).add_small("limit", 0);
    RETURN_IF_ERROR(m_connection.ask(write_command("delete", m_connection, "deletes", statements, limit), limit));
    return Done{};
  }

  // Deletes the documents that are of no use any more. An error is not reported: a later commit cleans.
  void clean(const CallLimits& limit)
  {
    const std::int64_t before = m_seen->time_ms - Millis(kept_after_end).count();
    [[maybe_unused]] const auto removed =
        remove(Document().add("forget_at", Document().add_time("$lt", before)), limit);
  }

  const Clock& m_clock;
  std::unique_ptr<Rng> m_rng;
  Connection m_connection;
  std::optional<Seen> m_seen;
};

}  // namespace

std::unique_ptr<Backend> open_backend(ConnectionSpec spec, const Clock& clock, std::unique_ptr<Rng> rng)
{
  return std::make_unique<MongoBackend>(std::move(spec), clock, std::move(rng));
}

}  // namespace rlock::mongo
