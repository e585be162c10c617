// SPDX-License-Identifier: Apache-2.0
#include "store/mongo/mongo_changes.h"

#include <utility>

namespace rlock::mongo {
namespace {

constexpr Millis server_wait{5000};             // after that a server that has no change says so
constexpr Millis answer_time{2000};             // a server that takes this much longer is dead
constexpr Millis pause_after_failure{5000};     // the server may be another one then
constexpr Millis pause_after_refusal{600'000};  // nothing is different then, as a rule
constexpr Millis early{100};                    // a server that has no change and says so at once does not wait for one
constexpr int most_early_answers = 20;
constexpr std::int32_t most_changes = 100;  // in one answer; one of them is enough

// Whether the server will say the same again.
bool is_refusal(ErrorCode code)
{
  return code != ErrorCode::unreachable && code != ErrorCode::server_not_ready && code != ErrorCode::interrupted;
}

}  // namespace

// A document that is made or deleted has no updateDescription, and neither has a change of which a server does not say what it
// changed. The stream fails without the _id of its changes.
Document change_stream_command(const std::string& collection, const ChannelsByLock& locks)
{
  std::vector<std::string> names;
  std::vector<std::string> channels;
  for (const auto& [name, of_lock] : locks) {
    names.push_back(name);
    channels.insert(channels.end(), of_lock.begin(), of_lock.end());
  }
  std::vector<Document> either(2);
  either[0].add("updateDescription", Document().add_flag("$exists", false));
  either[1].add("updateDescription.updatedFields.messages.channel", Document().add("$in", channels));
  std::vector<Document> pipeline(3);
  pipeline[0].add("$changeStream", Document());
  pipeline[1].add("$match", Document().add("documentKey._id", Document().add("$in", names)).add("$or", either));
  pipeline[2].add("$project", Document().add_small("_id", 1));
  Document command;
  command.add("aggregate", collection).add("pipeline", pipeline);
  command.add("cursor", Document().add_small("batchSize", most_changes));
  command.add("readConcern", Document().add("level", "majority"));  // the only one for it; the default may be another
  return command;
}

void ChangeStream::open(const ChannelsByLock& locks, const CallLimits& limit)
{
  if (is_open() || m_clock.now() < m_next_opening) {
    return;
  }
  auto opened = m_connection.connect(limit);
  if (opened) {
    opened = m_connection.send(change_stream_command(m_connection.spec().collection, locks));
  }
  if (!opened) {
    return close_for(is_refusal(opened.error().code) ? pause_after_refusal : pause_after_failure);
  }
  m_state = State::opening;
  m_asked_at = m_clock.now();
  m_early_answers = 0;
  m_owes_change = false;
}

// The server ends the cursor with its connection, because it waits in a request.
void ChangeStream::close()
{
  m_connection.drop();
  m_state = State::closed;
  m_next_opening = m_clock.now();
}

void ChangeStream::close_for(Millis pause)
{
  close();
  m_next_opening += pause;
}

void ChangeStream::await_changes()
{
  Document command;
  command.add("getMore", m_cursor).add("collection", m_connection.spec().collection);
  command.add_small("batchSize", most_changes).add("maxTimeMS", std::int64_t{server_wait.count()});
  m_asked_at = m_clock.now();
  if (!m_connection.send(std::move(command))) {
    close_for(pause_after_failure);
  }
}

// False: nothing changed.
bool ChangeStream::take(const Fields& answer)
{
  const Fields cursor = answer.inner("cursor");
  m_cursor = cursor.number("id");
  const bool has_begun = m_state == State::opening;
  if (!answer.flag("ok") || m_cursor == 0) {
    close_for(has_begun && is_refusal(meaning_of(answer.number("code"))) ? pause_after_refusal : pause_after_failure);
    return true;
  }
  m_state = State::reporting;
  if (has_begun || !cursor.inner("nextBatch").all().empty()) {
    m_owes_change = false;
    return true;
  }
  m_early_answers = m_clock.now() - m_asked_at < early ? m_early_answers + 1 : 0;
  if (m_early_answers > most_early_answers) {
    close_for(pause_after_refusal);
  }
  return !is_open();
}

bool ChangeStream::has_news()
{
  if (!is_open()) {
    return false;
  }
  const auto received = m_connection.receive();
  if (received && !*received) {
    return false;
  }
  if (!received) {
    close_for(pause_after_failure);
    return true;
  }
  const bool has_changed = take((*received)->fields());
  if (is_open()) {
    await_changes();
  }
  return has_changed || !is_open();
}

void ChangeStream::looked(Found found)
{
  if (!is_open()) {
    return;
  }
  const Millis longest = is_reporting() ? server_wait + answer_time : answer_time;
  if (m_clock.now() > m_asked_at + longest) {
    close_for(pause_after_failure);
  } else if (m_owes_change) {
    close_for(pause_after_refusal);
  }
  m_owes_change = is_reporting() && found == Found::message;
}

}  // namespace rlock::mongo
