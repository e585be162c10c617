// SPDX-License-Identifier: Apache-2.0
#include "stores/zookeeper/messages.h"

#include <utility>
#include "stores/zookeeper/jute.h"

namespace rlock::zookeeper {
namespace {

// The numbers of the operations.
enum Type : std::int32_t {
  type_create_plain = 1,  // how a multi answers type_create: without the Stat
  type_delete = 2,
  type_exists = 3,
  type_get_data = 4,
  type_set_data = 5,
  type_get_children = 8,
  type_sync = 9,
  type_ping = 11,
  type_check = 13,
  type_multi = 14,
  type_create = 15,  // create2, whose answer has the Stat
  type_create_container = 19,
  type_auth = 100,
  type_close = -11,
  type_error = -1,
};

constexpr std::int32_t ping_number = -2;
constexpr std::int32_t auth_number = -4;
constexpr std::int32_t all_rights = 31;
constexpr std::size_t password_size = 16;

Stat read_stat(JuteReader& reader)
{
  Stat stat;
  stat.czxid = reader.number();
  stat.mzxid = reader.number();
  stat.created_ms = reader.number();
  reader.number();  // mtime
  stat.version = reader.small();
  reader.small();  // cversion
  reader.small();  // aversion
  stat.ephemeral_owner = reader.number();
  reader.small();  // dataLength
  stat.children = reader.small();
  reader.number();  // pzxid
  return stat;
}

// The results of the operations of a multi.
std::vector<Answer> read_parts(JuteReader& reader)
{
  std::vector<Answer> parts;
  while (reader.is_good()) {
    const std::int32_t type = reader.small();
    const bool is_end = reader.flag();
    reader.small();  // the error, which also follows
    if (is_end) {
      break;
    }
    Answer& part = parts.emplace_back();
    switch (type) {
      case type_error: part.code = static_cast<Code>(reader.small()); break;
      case type_create:
      case type_create_container:
        reader.text();
        part.stat = read_stat(reader);
        break;
      case type_create_plain: reader.text(); break;
      case type_set_data: part.stat = read_stat(reader); break;
      case type_delete:
      case type_check: break;
      default: reader = JuteReader({}); reader.small();
    }
  }
  return parts;
}

void read_fields(std::int32_t type, JuteReader& reader, Answer& answer)
{
  switch (type) {
    case type_create:
    case type_create_container:
      reader.text();
      answer.stat = read_stat(reader);
      break;
    case type_get_data:
      answer.data = reader.text();
      answer.stat = read_stat(reader);
      break;
    case type_set_data:
    case type_exists: answer.stat = read_stat(reader); break;
    case type_get_children:
      for (std::int32_t left = reader.count(size_of_length); left > 0; --left) {
        answer.children.push_back(reader.text());
      }
      break;
    default: break;
  }
}

}  // namespace

std::string connect_request(const Session& session, std::int64_t last_zxid, std::int32_t timeout_ms)
{
  JuteWriter request;
  request.small(0).number(last_zxid).small(timeout_ms).number(session.id);
  request.text(session.id == 0 ? std::string(password_size, '\0') : session.password).flag(false);
  return request.bytes();
}

std::optional<Connected> connected(std::string_view frame)
{
  JuteReader reader(frame);
  Connected answer;
  reader.small();  // the version of the protocol
  answer.timeout_ms = reader.small();
  answer.session.id = reader.number();
  answer.session.password = reader.text();
  const bool is_good = reader.is_good() && answer.timeout_ms >= 0;  // a flag may follow
  return is_good ? std::optional(answer) : std::nullopt;
}

Operation create(std::string_view path, std::string_view data, CreateMode mode, bool is_private)
{
  JuteWriter body;
  body.text(path).text(data).small(1).small(all_rights);
  if (is_private) {
    body.text("auth").text("");
  } else {
    body.text("world").text("anyone");
  }
  body.small(static_cast<std::int32_t>(mode));
  return {mode == CreateMode::container ? type_create_container : type_create, body.bytes()};
}

Operation remove(std::string_view path, std::int32_t version)
{
  return {type_delete, JuteWriter().text(path).small(version).bytes()};
}

Operation set_data(std::string_view path, std::string_view data, std::int32_t version)
{
  return {type_set_data, JuteWriter().text(path).text(data).small(version).bytes()};
}

Operation check(std::string_view path, std::int32_t version)
{
  return {type_check, JuteWriter().text(path).small(version).bytes()};
}

Operation exists(std::string_view path, bool watches)
{
  return {type_exists, JuteWriter().text(path).flag(watches).bytes()};
}

Operation get_data(std::string_view path, bool watches)
{
  return {type_get_data, JuteWriter().text(path).flag(watches).bytes()};
}

Operation get_children(std::string_view path)
{
  return {type_get_children, JuteWriter().text(path).flag(false).bytes()};
}

Operation sync(std::string_view path) { return {type_sync, JuteWriter().text(path).bytes()}; }

Operation multi(std::span<const Operation> operations)
{
  JuteWriter body;
  for (const Operation& each : operations) {
    body.small(each.type).flag(false).small(-1).append(each.body);
  }
  body.small(-1).flag(true).small(-1);
  return {type_multi, body.bytes(), operations.size()};
}

Operation ping() { return {type_ping, {}}; }

Operation close_session() { return {type_close, {}}; }

Operation digest_auth(std::string_view user, std::string_view password)
{
  const std::string both = std::string(user) + ":" + std::string(password);
  return {type_auth, JuteWriter().small(0).text("digest").text(both).bytes()};
}

std::string frame_of(const Operation& operation, std::int32_t number)
{
  return JuteWriter().small(number).small(operation.type).append(operation.body).bytes();
}

std::int32_t number_of(const Operation& operation, std::int32_t next)
{
  return operation.type == type_ping ? ping_number : operation.type == type_auth ? auth_number : next;
}

std::optional<Received> received(std::string_view frame)
{
  constexpr std::size_t header_size = 16;
  JuteReader reader(frame);
  Received header;
  header.number = reader.small();
  header.zxid = reader.number();
  header.code = static_cast<Code>(reader.small());
  if (!reader.is_good()) {
    return std::nullopt;
  }
  header.rest = frame.substr(header_size);
  return header;
}

std::optional<Answer> answer_to(const Operation& operation, const Received& received)
{
  Answer answer{.code = received.code, .zxid = received.zxid, .stat = {}, .data = {}};
  JuteReader reader(received.rest);
  if (operation.type == type_multi && !received.rest.empty()) {
    answer.parts = read_parts(reader);
    for (const Answer& part : answer.parts) {
      if (answer.is_ok() && !part.is_ok()) {
        answer.code = part.code;
      }
    }
  } else if (answer.is_ok()) {
    read_fields(operation.type, reader, answer);
  }
  const bool is_whole = !answer.is_ok() || answer.parts.size() == operation.parts;
  return reader.is_good() && is_whole ? std::optional(std::move(answer)) : std::nullopt;
}

std::optional<WatchEvent> watch_event(std::string_view rest)
{
  JuteReader reader(rest);
  WatchEvent event;
  event.type = reader.small();
  reader.small();  // the state of the connection
  event.path = reader.text();
  return reader.is_good() ? std::optional(event) : std::nullopt;
}

}  // namespace rlock::zookeeper
