// SPDX-License-Identifier: Apache-2.0
#include "redis/codec.h"

#include "base/text.h"
#if __has_include(<hiredis/hiredis.h>)
#include <hiredis/hiredis.h>
#else
#include <hiredis.h>
#endif
#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>
#include <new>
#include <string>
#include <utility>

namespace rlock {

// The reply that is being built, and what it cost so far. Not in the namespace below, because Decoder::State has one.
struct Unfinished {
  enum class Refused { nothing, size, type };
  std::size_t bytes = 0;
  std::size_t values = 0;
  Refused refused = Refused::nothing;
};

namespace {

int depth_of(const redisReadTask* task)
{
  int depth = 0;
  for (; task->parent != nullptr; task = task->parent) {
    ++depth;
  }
  return depth;
}

// Adds a value to the array that it belongs to. nullptr, which hiredis reports as an error: refused. An array that is not
// finished is the last element of its own, so no element moves that hiredis still refers to.
Reply* add(const redisReadTask* task, Reply::Kind kind)
{
  auto& unfinished = *static_cast<Unfinished*>(task->privdata);
  if (++unfinished.values > most_values || depth_of(task) > deepest_array) {
    unfinished.refused = Unfinished::Refused::size;
    return nullptr;
  }
  if (task->parent == nullptr) {
    return new Reply{.kind = kind};
  }
  auto& elements = static_cast<Reply*>(task->parent->obj)->elements;
  return &elements.emplace_back(Reply{.kind = kind});
}

// Newer versions of hiredis know the types of RESP3, which Reply does not have.
Reply* refused_type(const redisReadTask* task)
{
  static_cast<Unfinished*>(task->privdata)->refused = Unfinished::Refused::type;
  return nullptr;
}

Reply* add_text(const redisReadTask* task, std::string_view text)
{
  const bool is_error = task->type == REDIS_REPLY_ERROR;
  if (!is_error && task->type != REDIS_REPLY_STRING && task->type != REDIS_REPLY_STATUS) {
    return refused_type(task);
  }
  Reply* const reply = add(task, is_error ? Reply::Kind::error : Reply::Kind::text);
  if (reply != nullptr) {
    reply->text = text;
  }
  return reply;
}

// How hiredis builds a reply. Its own functions reserve memory for as many elements as a server announces, and newer versions
// nest arrays without a limit. The types of the functions differ between versions.
template <typename Functions>
constexpr Functions building_functions()
{
  Functions make{};
  make.createString = [](auto* task, auto* text, auto size) -> void* { return add_text(task, {text, size}); };
  make.createArray = [](auto* task, auto) -> void* {
    return task->type == REDIS_REPLY_ARRAY ? add(task, Reply::Kind::array) : refused_type(task);
  };
  make.createInteger = [](auto* task, auto value) -> void* {
    Reply* const reply = add(task, Reply::Kind::integer);
    if (reply != nullptr) {
      reply->integer = value;
    }
    return reply;
  };
  make.createNil = [](auto* task) -> void* { return add(task, Reply::Kind::nil); };
  if constexpr (requires { make.createDouble; }) {
    make.createDouble = [](auto* task, auto...) -> void* { return refused_type(task); };
    make.createBool = [](auto* task, auto...) -> void* { return refused_type(task); };
  }
  make.freeObject = [](void* reply) { delete static_cast<Reply*>(reply); };
  return make;
}

constinit redisReplyObjectFunctions building = building_functions<redisReplyObjectFunctions>();

Error not_resp(std::string_view why)
{
  return {ErrorCode::unreachable, "does not answer like a redis server without TLS (" + printable(why) + ")"};
}

void append_length(std::string& out, char kind, std::size_t length)
{
  std::array<char, 20> digits{};
  char* const end = std::to_chars(digits.data(), digits.data() + digits.size(), length).ptr;
  out.push_back(kind);
  out.append(digits.data(), end).append("\r\n");
}

}  // namespace

// Formats a request without hiredis, because hiredis formats each length with sprintf(3), which took a tenth of the instructions
// of a start.
std::string encode(std::span<const std::string_view> argv)
{
  constexpr std::size_t room_for_length = 16;
  std::size_t size = room_for_length;
  for (const std::string_view word : argv) {
    size += word.size() + room_for_length;
  }
  std::string out;
  out.reserve(size);
  append_length(out, '*', argv.size());
  for (const std::string_view word : argv) {
    append_length(out, '$', word.size());
    out.append(word).append("\r\n");
  }
  return out;
}

struct Decoder::State {
  State() : reader(redisReaderCreateWithFunctions(&building))
  {
    if (reader == nullptr) {
      throw std::bad_alloc();
    }
    reader->privdata = &unfinished;
  }
  ~State() { redisReaderFree(reader); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  redisReader* reader;
  Unfinished unfinished;
};

Decoder::Decoder() : m_state(new State) {}

void Decoder::Free::operator()(State* state) const { delete state; }

void Decoder::feed(std::string_view bytes)
{
  m_state->unfinished.bytes += bytes.size();
  redisReaderFeed(m_state->reader, bytes.data(), bytes.size());  // next() reports an error
}

Result<std::optional<Reply>> Decoder::next()
{
  Unfinished& unfinished = m_state->unfinished;
  void* parsed = nullptr;
  const bool is_valid = redisReaderGetReply(m_state->reader, &parsed) == REDIS_OK;
  const std::unique_ptr<Reply> reply(static_cast<Reply*>(parsed));
  if (unfinished.refused == Unfinished::Refused::size || (!reply && unfinished.bytes > longest_reply)) {
    return Error{ErrorCode::unreachable, "answered with more than 16 MiB or 131072 values"};
  }
  if (!is_valid) {
    return not_resp(unfinished.refused == Unfinished::Refused::type ? "a type of RESP3" : m_state->reader->errstr);
  }
  if (!reply) {
    return std::optional<Reply>{};
  }
  unfinished = {};
  return std::optional(std::move(*reply));
}

namespace {

struct Rule {
  std::string_view start;  // of the server's text, whole words
  ErrorCode code;
  std::string_view advice;
};

constexpr std::string_view script_refusal = "The user executing the script can't";  // Redis 6.2

constexpr std::string_view unknown_command = "ERR unknown command";
constexpr std::string_view unknown_in_script = "Unknown Redis command called from";  // Redis 6.2 without ERR

constexpr std::string_view missing_rule = "rlock acl prints the rules that a user needs";
constexpr std::string_view name_the_master = "it is a replica; name the master";
constexpr std::string_view has_become_replica = "it has become a replica";
constexpr std::string_view choose_smaller_db = "choose a smaller db number";
constexpr std::string_view give_password =
    "give the password by --password-file, RLOCK_PASSWORD_FILE, RLOCK_PASSWORD or the URL";

constexpr std::string_view switched_off = "a command that rlock needs is renamed or switched off there";

constexpr std::string_view is_a_node = "it is a node of a cluster: use -S ";

constexpr Rule rules[] = {
    {"LOADING", ErrorCode::server_not_ready, "wait until it has loaded its data"},
    {"BUSY", ErrorCode::server_not_ready, "a script runs for too long there; SCRIPT KILL ends it"},
    {"OOM", ErrorCode::server_not_ready, "its memory is full; raise maxmemory"},
    {"MISCONF", ErrorCode::server_not_ready, "it cannot save to disk; see its log"},
    {"READONLY", ErrorCode::server_not_ready, name_the_master},
    {"MASTERDOWN", ErrorCode::server_not_ready, name_the_master},
    {"NOREPLICAS", ErrorCode::server_not_ready, "too few replicas follow it; see min-replicas-to-write"},
    {"CLUSTERDOWN", ErrorCode::server_not_ready, "see CLUSTER INFO there"},
    {"TRYAGAIN", ErrorCode::server_not_ready, "its slots are being moved; try again"},
    {"UNBLOCKED", ErrorCode::server_not_ready, has_become_replica},
    {"ERR WAIT cannot be used with replica", ErrorCode::server_not_ready, has_become_replica},
    {"ERR max number of clients", ErrorCode::server_not_ready, "raise maxclients there"},
    {unknown_command, ErrorCode::server_not_ready, switched_off},
    {unknown_in_script, ErrorCode::unreachable, switched_off},
    {"ERR Unknown Redis command called from", ErrorCode::unreachable, switched_off},
    {"NOAUTH", ErrorCode::refused, give_password},
    {"WRONGPASS", ErrorCode::refused, "check the user and the password"},
    {"NOPERM", ErrorCode::refused, missing_rule},
    {"ERR The user executing the script can't", ErrorCode::refused, missing_rule},
    {"ERR ACL failure in script", ErrorCode::refused, missing_rule},
    {script_refusal, ErrorCode::refused, missing_rule},
    {"DENIED", ErrorCode::refused, "it is in protected mode; set a password there"},
    {"WRONGTYPE", ErrorCode::config, "the key holds something that is no such lock; choose another key"},
    {"ERR DB index is out of range", ErrorCode::config, choose_smaller_db},
    {"ERR invalid DB index", ErrorCode::config, choose_smaller_db},
    {"MOVED", ErrorCode::config, is_a_node},
    {"ASK", ErrorCode::config, is_a_node},
};

bool begins_with_words(std::string_view text, std::string_view words)
{
  return text.starts_with(words) &&
         (text.size() == words.size() || text[words.size()] == ' ' || text[words.size()] == ':');
}

bool is_code_letter(char c) { return c >= 'A' && c <= 'Z'; }

// Redis 6.2 puts the line before the error of a script, `...: @user_script: 1: -CODE text`, and a denial there has no
// code. Only such texts are searched, because others may quote a key.
std::string_view unwrapped(std::string_view text)
{
  if (!text.starts_with("ERR Error running script") && !text.starts_with("@user_script")) {
    return text;
  }
  for (const std::string_view phrase : {script_refusal, unknown_in_script}) {
    if (const auto at = text.find(phrase); at != std::string_view::npos) {
      return text.substr(at);
    }
  }
  for (auto at = text.find(" -"); at != std::string_view::npos; at = text.find(" -", at + 1)) {
    const std::string_view rest = text.substr(at + 2);
    const auto end = std::find_if_not(rest.begin(), rest.end(), is_code_letter);
    if (end != rest.begin() && (end == rest.end() || *end == ' ')) {
      return rest;
    }
  }
  return text;
}

// The number in `@user_script:12`, which follows the name of the function on Redis 6.2; 0: there is none.
int script_line(std::string_view text)
{
  constexpr std::string_view marker = "@user_script:";
  const auto at = text.rfind(marker);
  if (at == std::string_view::npos) {
    return 0;
  }
  text.remove_prefix(at + marker.size());
  text.remove_prefix(std::min(text.size(), text.find_first_not_of(' ')));  // Redis 6.2 has a blank there
  int line = 0;
  std::from_chars(text.data(), text.data() + text.size(), line);
  return line;
}

// The first sentence, without the line in the script and without the arguments that some texts quote: an owner's id may
// be among them.
std::string shortened(std::string_view text)
{
  constexpr std::size_t max_size = 160;
  constexpr std::string_view redis_8 = "ERR ACL failure in script: ";
  const std::size_t begin = text.starts_with(redis_8) ? redis_8.size() : 0;
  for (const std::string_view end : {". ", " script: ", ", with args", "\n", "\r"}) {
    text = text.substr(0, text.find(end, begin));
  }
  const bool cut = text.size() > max_size;
  text = text.substr(0, max_size);
  while (text.ends_with('.')) {
    text.remove_suffix(1);
  }
  return printable(text) + (cut ? "..." : "");
}

// The URL of the cluster by the address of this node.
std::string completion(const Rule& rule, std::string_view where)
{
  if (rule.advice != is_a_node) {
    return {};
  }
  const std::string url(where.starts_with("redis") ? where : "redis://host:port");
  const auto scheme = url.find("://");
  return url.substr(0, scheme) + "+cluster" + url.substr(scheme);
}

}  // namespace

Error error_from_reply(std::string_view text, std::string_view where)
{
  const int line = script_line(text);
  text = unwrapped(text);
  // The answers to a request of many words, and to a HELLO.
  if (begins_with_words(text, "ERR Protocol error: unauthenticated") || begins_with_words(text, "NOAUTH HELLO")) {
    text = "NOAUTH Authentication required";
  }
  const auto* const rule = std::find_if(std::begin(rules), std::end(rules),
                                        [text](const Rule& each) { return begins_with_words(text, each.start); });
  const std::string message = std::string(where) + " says: " + shortened(text);
  if (rule == std::end(rules)) {
    return {ErrorCode::unreachable, message};  // a script may have written something before it failed
  }
  const bool is_about_command = rule->code == ErrorCode::refused || rule->advice == switched_off;
  Error error = unreachable(message, " (" + std::string(rule->advice) + completion(*rule, where) + ")");
  error.code = rule->code;
  error.script_line = is_about_command ? line : 0;
  return error;
}

bool is_missing_rule(const Error& error)
{
  return error.code == ErrorCode::refused && error.text.find(missing_rule) != std::string::npos;
}

bool is_unknown_script(std::string_view text) { return begins_with_words(unwrapped(text), "NOSCRIPT"); }

bool is_unknown_command(std::string_view text) { return text.starts_with(unknown_command); }

}  // namespace rlock
