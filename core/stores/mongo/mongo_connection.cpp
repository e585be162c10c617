// SPDX-License-Identifier: Apache-2.0
#include "stores/mongo/mongo_connection.h"

#include <unistd.h>
#include <algorithm>
#include <array>
#include <limits>
#include <string_view>
#include "base/text.h"
#include "base/wait.h"

namespace rlock::mongo {
namespace {

constexpr const char* no_password = "no password supplied";

constexpr std::string_view too_large_advice =
    " (16 MB is the limit of MongoDB: there are too many waiters, or a value is too long)";

// What the code of an error means to a lock client (MongoDB's error_codes.yml).
struct CodeRow {
  std::int64_t code;
  ErrorCode means;
  bool ends_connection;
  std::string_view advice;
};
// An operation may have happened although the server ended it by a timeout, a step-down or a shutdown.
constexpr auto codes = std::to_array<CodeRow>({
    {1, ErrorCode::unreachable, true, raise_timeout},  // InternalError: FerretDB says so when maxTimeMS is over
    {2, ErrorCode::config, false, ""},      // BadValue: a server without a journal, on which no commit can wait for it
    {6, ErrorCode::unreachable, true, ""},  // HostUnreachable
    {7, ErrorCode::unreachable, true, ""},  // HostNotFound
    {11, ErrorCode::refused, true, check_login},                                                 // UserNotFound
    {unauthorized, ErrorCode::refused, false, " (rlock acl prints the role that rlock needs)"},  // Unauthorized
    {18, ErrorCode::refused, true, check_login},                                                 // AuthenticationFailed
    {8000, ErrorCode::refused, true, check_login},                                               // AtlasError
    {50, ErrorCode::unreachable, true, raise_timeout},                                           // MaxTimeMSExpired
    {64, ErrorCode::unreachable, true, " (is a majority of the replica set there?)"},            // WriteConcernFailed
    {100, ErrorCode::server_not_ready, false, ""},                 // UnsatisfiableWriteConcern
    {89, ErrorCode::unreachable, true, ""},                        // NetworkTimeout
    {262, ErrorCode::unreachable, true, raise_timeout},            // ExceededTimeLimit
    {9001, ErrorCode::unreachable, true, ""},                      // SocketException
    {11601, ErrorCode::unreachable, true, ""},                     // Interrupted
    {112, ErrorCode::server_not_ready, false, ""},                 // WriteConflict
    {134, ErrorCode::server_not_ready, false, ""},                 // ReadConcernMajorityNotAvailableYet
    {91, ErrorCode::unreachable, true, ""},                        // ShutdownInProgress
    {189, ErrorCode::unreachable, true, ""},                       // PrimarySteppedDown
    {10107, ErrorCode::server_not_ready, true, ""},                // NotWritablePrimary
    {11600, ErrorCode::unreachable, true, ""},                     // InterruptedAtShutdown
    {11602, ErrorCode::unreachable, true, ""},                     // InterruptedDueToReplStateChange
    {13435, ErrorCode::server_not_ready, true, ""},                // NotPrimaryNoSecondaryOk
    {13436, ErrorCode::server_not_ready, true, ""},                // NotPrimaryOrSecondary
    {73, ErrorCode::config, false, ""},                            // InvalidNamespace
    {166, ErrorCode::config, false, " (use another collection)"},  // CommandNotSupportedOnView
    {too_large[0], ErrorCode::config, false, too_large_advice},
    {too_large[1], ErrorCode::config, false, too_large_advice},
    {too_large[2], ErrorCode::config, false, too_large_advice},
});

ServerFacts facts_of(const Fields& hello)
{
  const auto time = hello.find("localTime");
  return {.time_ms = time ? time->time_ms().value_or(0) : 0,
          .replica_set = hello.text("setName"),
          .is_primary = hello.flag("isWritablePrimary") || hello.flag("ismaster"),
          .is_mongos = hello.text("msg") == "isdbgrid",
          .wire_version = hello.number("maxWireVersion")};
}

ServerError error_in(const Fields& answer)
{
  if (!answer.flag("ok")) {
    return {.code = answer.number("code"), .text = answer.text("errmsg")};
  }
  for (const Field& each : answer.inner("writeErrors").all()) {
    return {.code = each.inner().number("code"), .text = each.inner().text("errmsg")};
  }
  if (answer.find("writeConcernError")) {
    const Fields error = answer.inner("writeConcernError");
    return {.code = 64, .text = error.text("errmsg")};
  }
  return {};
}

std::string bytes_of(const bson_t& document)
{
  return {reinterpret_cast<const char*>(lib().bson_get_data(&document)), document.len};
}

// For the options of libmongoc, which end a wait for a server that does not answer.
std::int32_t ms_left(const Clock& clock, const CallLimits& limit)
{
  const auto left = std::chrono::ceil<Millis>(limit.deadline - clock.now()).count();
  return static_cast<std::int32_t>(std::clamp<std::int64_t>(left, 1, std::numeric_limits<std::int32_t>::max()));
}

// Lets the streams of a client know the limits of a call while it lasts.
class CallScope {
 public:
  CallScope(StreamContext& context, const CallLimits& limit) : m_context(context)
  {
    context.limit = &limit;
    context.failure.reset();
  }
  ~CallScope() { m_context.limit = nullptr; }
  CallScope(const CallScope&) = delete;
  CallScope& operator=(const CallScope&) = delete;

 private:
  StreamContext& m_context;
};

struct FreeDescription {
  void operator()(mongoc_server_description_t* server) const { lib().mongoc_server_description_destroy(server); }
};

}  // namespace

// libmongoc takes leave of the server here; nothing waits for the answer.
void Connection::drop()
{
  if (m_client != nullptr) {
    m_context.limit = nullptr;
    lib().mongoc_client_destroy(m_client);
    m_client = nullptr;
  }
}

const OpenStream* Connection::stream() const
{
  const auto found =
      std::ranges::find(m_context.open.rbegin(), m_context.open.rend(), m_server_name, &OpenStream::server);
  return m_client == nullptr || found == m_context.open.rend() ? nullptr : &*found;
}

Error Connection::lost(const bson_error_t& why)
{
  const bool was_connected = m_server != 0;
  drop();
  const std::string text = printable(why.message);
  if (m_context.failure && m_context.failure->code == ErrorCode::interrupted) {
    return *m_context.failure;
  }
  const bool is_login = why.domain == MONGOC_ERROR_SCRAM || why.domain == MONGOC_ERROR_SASL ||
                        (why.domain == MONGOC_ERROR_CLIENT && why.code == MONGOC_ERROR_CLIENT_AUTHENTICATE);
  if (m_context.failure) {
    const std::string what = was_connected ? "lost the connection to " : "cannot reach ";
    if (m_context.failure->late && m_spec.uses_tls && !m_context.was_heard) {
      return {.code = ErrorCode::unreachable,
              .text = what + m_spec.url +
                      ": no answer to the beginning of TLS in time (see that the server has TLS, or raise "
                      "--server-timeout)",
              .late = true};
    }
    return {.code = m_context.failure->code,
            .text = what + m_spec.url + ": " + m_context.failure->text,
            .was_there = was_connected,
            .late = m_context.failure->late};
  }
  if (is_login) {
    const bool has_none = why.domain == MONGOC_ERROR_SCRAM && m_spec.password.empty();
    return {ErrorCode::refused, m_spec.url + ": " + (has_none ? no_password : text) + std::string(check_login)};
  }
  if (why.domain == MONGOC_ERROR_SERVER_SELECTION && why.code == MONGOC_ERROR_PROTOCOL_BAD_WIRE_VERSION) {
    return {ErrorCode::server_not_ready, m_spec.url + ": " + text + " (run MongoDB 4.4 or later)"};
  }
  return {.code = ErrorCode::unreachable,
          .text = (was_connected ? "lost the connection to " : "cannot connect to ") + m_spec.url + ": " + text,
          .was_there = was_connected};
}

Error Connection::refused(const ServerError& error)
{
  m_server_error = error;
  const auto row = std::ranges::find(codes, error.code, &CodeRow::code);
  if (row == codes.end()) {
    return unreachable(m_spec.url + ": " + printable(error.text), " (error " + std::to_string(error.code) + ")");
  }
  if (row->ends_connection) {
    drop();
  }
  Error refusal = unreachable(m_spec.url + ": " + printable(error.text), row->advice);
  refusal.code = row->means;
  return refusal;
}

// The server that libmongoc selects for writes has just answered a hello.
Result<ServerFacts> Connection::connect(const CallLimits& limit)
{
  RETURN_IF_ERROR(libmongoc());
  m_server = 0;
  bson_error_t why{};
  const std::unique_ptr<mongoc_uri_t, FreeUri> uri(
      lib().mongoc_uri_new_with_error(url_for_libmongoc(m_spec.url, !m_spec.user.empty()).c_str(), &why));
  if (uri == nullptr) {
    return Error{ErrorCode::usage, m_spec.url + ": " + printable(why.message)};
  }
  if (!m_spec.user.empty()) {
    lib().mongoc_uri_set_username(uri.get(), m_spec.user.c_str());
    lib().mongoc_uri_set_password(uri.get(), m_spec.password.c_str());
  }
  const std::int32_t left = ms_left(*m_clock, limit);
  for (const char* option : {MONGOC_URI_CONNECTTIMEOUTMS, MONGOC_URI_SERVERSELECTIONTIMEOUTMS}) {
    lib().mongoc_uri_set_option_as_int32(uri.get(), option, left);
  }
  m_context.clock = m_clock;
  m_context.process = ::getpid();
  m_context.was_heard = false;
  m_client = lib().mongoc_client_new_from_uri_with_error(uri.get(), &why);
  if (m_client == nullptr) {
    return lost(why);
  }
  lib().mongoc_client_set_error_api(m_client, MONGOC_ERROR_API_VERSION_2);
  lib().mongoc_client_set_stream_initiator(m_client, open_stream, &m_context);
  const std::unique_ptr<mongoc_server_description_t, FreeDescription> server(
      lib().mongoc_client_select_server(m_client, true, nullptr, &why));
  if (server == nullptr) {
    return lost(why);
  }
  m_context.failure.reset();  // that of another server of the set
  m_server = lib().mongoc_server_description_id(server.get());
  m_server_name = lib().mongoc_server_description_host(server.get())->host_and_port;
  return facts_of(Fields(bytes_of(*lib().mongoc_server_description_hello_response(server.get()))));
}

Result<Answer> Connection::run(const std::string& database, const Document& command)
{
  bson_t reply{};
  bson_error_t why{};
  const bool done = lib().mongoc_client_command_simple_with_server_id(m_client, database.c_str(), command.bson(),
                                                                      nullptr, m_server, &reply, &why);
  Answer answer(bytes_of(reply));
  lib().bson_destroy(&reply);
  if (!done && why.domain != MONGOC_ERROR_SERVER && why.domain != MONGOC_ERROR_WRITE_CONCERN) {
    return lost(why);
  }
  const ServerError error = error_in(answer.fields());
  if (error.code == 0 && !done) {
    return refused({.code = why.code, .text = why.message});
  }
  return error.code == 0 ? Result(std::move(answer)) : Result<Answer>(refused(error));
}

Result<Answer> Connection::ask(const std::string& database, const Document& command, const CallLimits& limit)
{
  const CallScope scope(m_context, limit);
  m_server_error = {};
  if (m_client == nullptr) {
    RETURN_IF_ERROR(connect(limit));
  }
  return run(database, command);
}

Result<Answer> Connection::ask(const Document& command, const CallLimits& limit)
{
  return ask(m_spec.database, command, limit);
}

void Connection::tell(const Document& command)
{
  if (m_client != nullptr) {
    m_context.limit = nullptr;  // so no answer is read
    [[maybe_unused]] const auto unknown = run(m_spec.database, command);
    drop();
  }
}

Result<ServerFacts> Connection::facts(const CallLimits& limit)
{
  const CallScope scope(m_context, limit);
  m_server_error = {};
  if (m_client == nullptr) {
    return connect(limit);
  }
  const auto answer = run("admin", Document().add_small("hello", 1));
  return answer ? Result(facts_of(answer->fields())) : Result<ServerFacts>(answer.error());
}

Result<ServerFacts> Connection::hello(const CallLimits& limit)
{
  auto server = facts(limit);
  if (!server) {
    return server;
  }
  if (server->is_mongos) {
    drop();
    return Error{ErrorCode::config, m_spec.url +
                                        " is mongos, which has no clock to keep locks by (name the servers "
                                        "of one replica set)"};
  }
  if (server->wire_version < oldest_wire_version) {
    drop();
    return Error{ErrorCode::server_not_ready, m_spec.url + " is too old (run MongoDB 4.4 or later)"};
  }
  if (!server->is_primary) {
    drop();
    return Error{ErrorCode::server_not_ready,
                 m_spec.url + " is no primary server (name the replica set: ?replicaSet=NAME)"};
  }
  if (server->time_ms == 0) {
    drop();
    return Error{ErrorCode::internal, m_spec.url + " does not tell its time (is it MongoDB?)"};
  }
  return server;
}

}  // namespace rlock::mongo
