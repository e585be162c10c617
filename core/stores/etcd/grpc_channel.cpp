// SPDX-License-Identifier: Apache-2.0
#include "stores/etcd/grpc_channel.h"

#include <poll.h>
#include <algorithm>
#include <charconv>
#include <utility>
#include <vector>
#include "base/text.h"
#include "base/wait.h"
#include "net/url_parts.h"

namespace rlock::etcd {
namespace {

constexpr std::size_t frame_head = 5;  // of a message: a flag for compression, and its length

std::string framed(std::string_view message)
{
  std::string frame(frame_head, '\0');
  for (std::size_t i = 1; i < frame_head; ++i) {
    frame[i] = static_cast<char>(message.size() >> (8 * (frame_head - 1 - i)) & 0xFFU);
  }
  return frame.append(message);
}

std::size_t length_in(std::string_view head)
{
  std::size_t length = 0;
  for (const char byte : head.substr(1, frame_head - 1)) {
    length = length << 8U | static_cast<unsigned char>(byte);
  }
  return length;
}

int number_in(std::string_view text)
{
  int number = -1;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

std::string_view text_of(const std::uint8_t* bytes, std::size_t size)
{
  return {reinterpret_cast<const char*>(bytes), size};
}

nghttp2_nv header(std::string_view name, std::string_view value)
{
  const auto bytes = [](std::string_view text) {
    return const_cast<std::uint8_t*>(
        reinterpret_cast<const std::uint8_t*>(text.data()));  // NOLINT: nghttp2 copies them
  };
  return {bytes(name), bytes(value), name.size(), value.size(), NGHTTP2_NV_FLAG_NONE};
}

}  // namespace

// What libnghttp2 calls. Returns 0: the connection goes on.
struct GrpcChannel::Callbacks {
  static GrpcChannel& self(void* channel) { return *static_cast<GrpcChannel*>(channel); }

  static int on_header(nghttp2_session*, const nghttp2_frame* frame, const std::uint8_t* name, std::size_t name_size,
                       const std::uint8_t* value, std::size_t value_size, std::uint8_t, void* channel)
  {
    self(channel).add_header(frame->hd.stream_id, text_of(name, name_size), text_of(value, value_size));
    return 0;
  }
  static int on_data(nghttp2_session*, std::uint8_t, Stream stream, const std::uint8_t* bytes, std::size_t size,
                     void* channel)
  {
    self(channel).add_data(stream, text_of(bytes, size));
    return 0;
  }
  static int on_frame(nghttp2_session*, const nghttp2_frame* frame, void* channel)
  {
    self(channel).m_has_heard = self(channel).m_has_heard || frame->hd.type == NGHTTP2_SETTINGS;
    return 0;
  }
  static int on_close(nghttp2_session*, Stream stream, std::uint32_t, void* channel)
  {
    self(channel).close_call(stream);
    return 0;
  }
  static ssize_t read_body(nghttp2_session*, Stream stream, std::uint8_t* bytes, std::size_t size, std::uint32_t* flags,
                           nghttp2_data_source*, void* channel)
  {
    Call* const call = self(channel).call_of(stream);
    if (call == nullptr) {
      return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    }
    const std::size_t count = std::min(size, call->to_send.size());
    std::copy_n(call->to_send.begin(), count, bytes);
    call->to_send.erase(0, count);
    if (!call->sends_more && call->to_send.empty()) {
      *flags |= NGHTTP2_DATA_FLAG_EOF;
    } else if (count == 0) {
      return NGHTTP2_ERR_DEFERRED;
    }
    return static_cast<ssize_t>(count);
  }
};

GrpcChannel::GrpcChannel(ByteStream bytes, const Libnghttp2& library, const Endpoint& server)
    : m_bytes(std::move(bytes)),
      m_library(library),
      m_authority(show(HostPort{server.host, server.port})),
      m_scheme(server.tls ? "https" : "http"),
      m_session(nullptr, Free{&library})
{
}

Result<std::unique_ptr<GrpcChannel>> GrpcChannel::open(const Endpoint& server, Opening opening, const Clock& clock,
                                                       const CallLimits& limit)
{
  ASSIGN_OR_RETURN(const auto library, libnghttp2());
  const Instant start = clock.now();
  ASSIGN_OR_RETURN(auto bytes, ByteStream::open(server, clock, limit, NGHTTP2_PROTO_VERSION_ID));
  std::unique_ptr<GrpcChannel> channel(new GrpcChannel(std::move(bytes), *library, server));
  RETURN_IF_ERROR(channel->start_session());
  RETURN_IF_ERROR(channel->m_bytes.decrypt_into([&](std::string_view plain) { channel->take_bytes(plain); }));
  if (opening == Opening::awaits_server) {
    ASSIGN_OR_RETURN(const auto heard, channel->run_until([&] { return channel->m_has_heard; }, limit));
    if (!heard) {
      return channel->m_bytes.no_answer(start, limit);
    }
  }
  return channel;
}

Result<Done> GrpcChannel::start_session()
{
  nghttp2_session_callbacks* callbacks = nullptr;
  nghttp2_session* session = nullptr;
  if (m_library.nghttp2_session_callbacks_new(&callbacks) != 0) {
    return Error{ErrorCode::os, "out of memory"};
  }
  m_library.nghttp2_session_callbacks_set_on_header_callback(callbacks, Callbacks::on_header);
  m_library.nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, Callbacks::on_frame);
  m_library.nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, Callbacks::on_data);
  m_library.nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, Callbacks::on_close);
  const int failed = m_library.nghttp2_session_client_new(&session, callbacks, this);
  m_library.nghttp2_session_callbacks_del(callbacks);
  m_session.reset(session);
  const nghttp2_settings_entry no_push{NGHTTP2_SETTINGS_ENABLE_PUSH, 0};
  if (failed != 0 || m_library.nghttp2_submit_settings(session, NGHTTP2_FLAG_NONE, &no_push, 1) != 0) {
    return Error{ErrorCode::os, "out of memory"};
  }
  return Done{};
}

Result<GrpcChannel::Stream> GrpcChannel::submit(std::string_view method, std::string_view message, End end)
{
  std::vector<nghttp2_nv> headers{
      header(":method", "POST"),
      header(":scheme", m_scheme),
      header(":path", method),
      header(":authority", m_authority),
      header("te", "trailers"),
      header("content-type", "application/grpc"),
      header("user-agent", "grpc-rlock/1"),
  };
  for (const auto& [name, value] : m_metadata) {
    if (!value.empty()) {
      headers.push_back(header(name, value));
    }
  }
  nghttp2_data_provider body{};
  body.read_callback = Callbacks::read_body;
  const Stream stream =
      m_library.nghttp2_submit_request(m_session.get(), nullptr, headers.data(), headers.size(), &body, nullptr);
  if (stream < 0) {  // the server has said that it takes no more
    return Error{.code = ErrorCode::unreachable,
                 .text = where() + " closes the connection: " + m_library.nghttp2_strerror(stream),
                 .was_there = true};
  }
  Call& call = m_calls[stream];
  call.sends_more = end == End::open;
  call.to_send = message;
  return stream;
}

Result<GrpcAnswer> GrpcChannel::call(std::string_view method, std::string_view message, const CallLimits& limit)
{
  const Instant start = m_bytes.clock().now();
  ASSIGN_OR_RETURN(const auto stream, submit(method, framed(message), End::whole));
  ASSIGN_OR_RETURN(const auto over, run_until([&] { return m_calls[stream].is_over; }, limit));
  if (!over) {
    return m_bytes.no_answer(start, limit);
  }
  Call call = std::move(m_calls[stream]);
  m_calls.erase(stream);
  const bool is_whole = call.code && (*call.code != GrpcCode::ok || call.messages.size() == 1);
  if (!is_whole) {
    return ended(call);
  }
  return GrpcAnswer{.status = {*call.code, std::move(call.status_text)},
                    .message = call.messages.empty() ? "" : std::move(call.messages.front())};
}

void GrpcChannel::post(std::string_view method, std::string_view message, const CallLimits& limit)
{
  const auto stream = submit(method, framed(message), End::whole);
  if (!stream) {
    return;
  }
  m_calls[*stream].is_forgotten = true;
  if (const auto sent = flush(limit); !sent) {
    m_failure = sent.error();
  }
}

Result<Done> GrpcChannel::send(Stream stream, std::string_view message, const CallLimits& limit)
{
  Call& call = m_calls[stream];
  if (call.is_over) {
    return ended(call);
  }
  call.to_send += framed(message);
  m_library.nghttp2_session_resume_data(m_session.get(), stream);
  return flush(limit);
}

bool GrpcChannel::has_news(Stream stream) const
{
  const auto call = m_calls.find(stream);
  return m_failure || call == m_calls.end() || call->second.is_over || !call->second.messages.empty();
}

Result<std::optional<std::string>> GrpcChannel::receive(Stream stream, const CallLimits& limit)
{
  ASSIGN_OR_RETURN(const auto heard, run_until([&] { return has_news(stream); }, limit));
  if (!heard) {
    return std::optional<std::string>();
  }
  Call& call = m_calls[stream];
  if (call.messages.empty()) {
    return ended(call);
  }
  std::optional<std::string> message(std::move(call.messages.front()));
  call.messages.pop_front();
  return message;
}

// False: the deadline has passed.
template <typename Condition>
Result<bool> GrpcChannel::run_until(const Condition& is_reached, const CallLimits& limit)
{
  for (bool is_late = false;;) {
    RETURN_IF_ERROR(flush(limit));
    if (is_reached()) {
      return true;
    }
    if (m_failure) {
      return *m_failure;
    }
    switch (is_late ? Waited::late : wait_for(fd(), POLLIN, m_bytes.clock(), limit)) {
      case Waited::late: return false;
      case Waited::stopped: return interrupted();
      case Waited::ready: break;
    }
    is_late = m_bytes.clock().now() >= limit.deadline;  // a server that never stops sending must not delay the caller
    RETURN_IF_ERROR(m_bytes.read_into([&](std::string_view bytes) { take_bytes(bytes); }));
  }
}

Result<Done> GrpcChannel::flush(const CallLimits& limit)
{
  std::string all;
  for (;;) {
    const std::uint8_t* bytes = nullptr;
    const ssize_t count = m_library.nghttp2_session_mem_send(m_session.get(), &bytes);
    if (count < 0) {
      return Error{ErrorCode::internal, where() + ": " + m_library.nghttp2_strerror(static_cast<int>(count))};
    }
    if (count == 0) {
      return all.empty() ? Result(Done{}) : m_bytes.send(all, limit);
    }
    all.append(text_of(bytes, static_cast<std::size_t>(count)));
  }
}

void GrpcChannel::take_bytes(std::string_view bytes)
{
  const ssize_t count = m_library.nghttp2_session_mem_recv(
      m_session.get(), reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
  const bool goes_on = m_library.nghttp2_session_want_read(m_session.get()) != 0;
  if ((count < 0 || !goes_on) && !m_failure) {
    m_failure = m_has_heard ? Error{.code = ErrorCode::unreachable,
                                    .text = "lost the connection to " + where() + ": the server ends it",
                                    .was_there = true}
                            : not_http2();
  }
}

Error GrpcChannel::not_http2() const
{
  return unreachable(where() + " does not speak HTTP/2",
                     m_scheme == "http" ? " (is it etcd's port for clients? if it speaks TLS: etcds://)"
                                        : " (is it etcd's port for clients?)");
}

// A call that is over, of which a message or its status is missing.
Error GrpcChannel::ended(const Call& call) const
{
  const std::string text = printable(call.status_text);
  if (call.http_status != 0 && call.http_status != 200) {
    return unreachable(where() + " answered with HTTP status " + std::to_string(call.http_status),
                       " (is it etcd's port for clients?)");
  }
  return {.code = ErrorCode::unreachable,
          .text = where() + " ended the request" + (text.empty() ? "" : ": " + text),
          .was_there = true};
}

GrpcChannel::Call* GrpcChannel::call_of(Stream stream)
{
  const auto call = m_calls.find(stream);
  return call == m_calls.end() ? nullptr : &call->second;
}

void GrpcChannel::add_header(Stream stream, std::string_view name, std::string_view value)
{
  Call* const call = call_of(stream);
  if (call == nullptr) {
    return;
  }
  if (name == ":status") {
    call->http_status = number_in(value);
  } else if (name == "grpc-status") {
    call->code = static_cast<GrpcCode>(number_in(value));
  } else if (name == "grpc-message") {
    call->status_text = percent_decoded(value).value_or(std::string(value));
  }
}

void GrpcChannel::add_data(Stream stream, std::string_view bytes)
{
  Call* const call = call_of(stream);
  if (call == nullptr) {
    return;
  }
  std::string& received = call->received.append(bytes);
  while (received.size() >= frame_head) {
    const std::size_t length = length_in(received);
    if (received[0] != 0 || length > longest_message) {
      m_failure = Error{ErrorCode::unreachable, where() + " answered with a message that is compressed or too long"};
      return;
    }
    if (received.size() < frame_head + length) {
      return;
    }
    call->messages.push_back(received.substr(frame_head, length));
    received.erase(0, frame_head + length);
  }
}

void GrpcChannel::close_call(Stream stream)
{
  Call* const call = call_of(stream);
  if (call != nullptr && call->is_forgotten) {
    m_calls.erase(stream);
  } else if (call != nullptr) {
    call->is_over = true;
  }
}

}  // namespace rlock::etcd
