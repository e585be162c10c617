// SPDX-License-Identifier: Apache-2.0
// gRPC calls to one server, on one HTTP/2 connection (gRPC over HTTP/2, PROTOCOL-HTTP2.md of grpc). Knows no etcd. Private to
// stores/etcd.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include "base/defaults.h"
#include "base/result.h"
#include "net/byte_stream.h"
#include "net/endpoint.h"
#include "stores/etcd/libnghttp2.h"

namespace rlock::etcd {

// The status codes of gRPC to which rlock pays attention.
enum class GrpcCode : int {
  ok = 0,
  unknown = 2,
  invalid_argument = 3,
  deadline_exceeded = 4,
  not_found = 5,
  permission_denied = 7,
  resource_exhausted = 8,
  failed_precondition = 9,
  out_of_range = 11,
  unimplemented = 12,
  unavailable = 14,
  unauthenticated = 16,
};

struct GrpcStatus {
  GrpcCode code = GrpcCode::ok;
  std::string text;  // as the server says it, percent-decoded
};

// A call that the server has refused has a status, and no message.
struct GrpcAnswer {
  GrpcStatus status;
  std::string message;
};

// A server that sends a longer message is not etcd, or has more locks than rlock lists.
inline constexpr std::size_t longest_message = std::size_t{64} << 20;

// Not thread-safe; may move between threads. The destructor sends nothing, because a child process may run it. After an Error the
// caller must drop the channel, as after one of Connection. `clock` must outlive it.
class GrpcChannel {
 public:
  // Connects. `awaits_server`: returns only when the server has spoken: a server that is stopped is late then.
  // Errors: those of ByteStream::open; unreachable: the server speaks no HTTP/2.
  enum class Opening { at_once, awaits_server };
  static Result<std::unique_ptr<GrpcChannel>> open(const Endpoint& server, Opening opening, const Clock& clock,
                                                   const CallLimits& limit);
  ~GrpcChannel() = default;
  GrpcChannel(const GrpcChannel&) = delete;
  GrpcChannel& operator=(const GrpcChannel&) = delete;

  // A header of each request from now on. An empty value: none.
  void set_metadata(const std::string& name, const std::string& value) { m_metadata[name] = value; }

  // One message there, one back. `method`: "/etcdserverpb.KV/Range". Errors: unreachable, interrupted.
  Result<GrpcAnswer> call(std::string_view method, std::string_view message, const CallLimits& limit);

  // The same without waiting for the answer. A failure shows at the next call.
  void post(std::string_view method, std::string_view message, const CallLimits& limit);

  // A call to which both sides send any number of messages. It lasts as long as the channel, or until the server ends it.
  using Stream = std::int32_t;
  Result<Stream> start(std::string_view method) { return submit(method, {}, End::open); }
  Result<Done> send(Stream stream, std::string_view message, const CallLimits& limit);
  // The next message. nullopt: none has come by the deadline, and the channel is still usable.
  Result<std::optional<std::string>> receive(Stream stream, const CallLimits& limit);

  // Whether receive() returns without waiting.
  [[nodiscard]] bool has_news(Stream stream) const;
  // Readable when receive() may return a message, if it has no news.
  [[nodiscard]] int fd() const { return m_bytes.fd(); }
  [[nodiscard]] const std::string& where() const { return m_bytes.where(); }

 private:
  struct Call {
    std::string to_send;
    bool sends_more = false;
    std::string received;              // the begin of a message
    std::deque<std::string> messages;  // whole ones that were not yet taken
    int http_status = 0;
    std::optional<GrpcCode> code;
    std::string status_text;
    bool is_over = false;
    bool is_forgotten = false;  // nothing waits for its end
  };
  enum class End { whole, open };

  GrpcChannel(ByteStream bytes, const Libnghttp2& library, const Endpoint& server);
  Result<Done> start_session();
  Result<Stream> submit(std::string_view method, std::string_view message, End end);
  Result<Done> flush(const CallLimits& limit);
  void take_bytes(std::string_view bytes);
  template <typename Condition>
  Result<bool> run_until(const Condition& is_reached, const CallLimits& limit);
  [[nodiscard]] Error not_http2() const;
  [[nodiscard]] Error ended(const Call& call) const;

  Call* call_of(Stream stream);
  void add_header(Stream stream, std::string_view name, std::string_view value);
  void add_data(Stream stream, std::string_view bytes);
  void close_call(Stream stream);

  struct Callbacks;
  struct Free {
    const Libnghttp2* library;
    void operator()(nghttp2_session* session) const { library->nghttp2_session_del(session); }
  };

  ByteStream m_bytes;
  const Libnghttp2& m_library;
  std::string m_authority;
  std::string m_scheme;
  std::map<std::string, std::string> m_metadata;
  std::unique_ptr<nghttp2_session, Free> m_session;
  std::map<Stream, Call> m_calls;
  bool m_has_heard = false;        // the server has sent its settings
  std::optional<Error> m_failure;  // of the session, while bytes were read
};

}  // namespace rlock::etcd
