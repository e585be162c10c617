// SPDX-License-Identifier: Apache-2.0
#include "stores/mongo/mongo_stream.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>
#include "base/fd.h"
#include "base/text.h"
#include "base/wait.h"
#include "net/dial.h"

namespace rlock::mongo {
namespace {

constexpr int own_type = 100;  // libmongoc has types from 1 to 5
constexpr std::size_t buffer_size = 4096;

// libmongoc sees the first member only.
struct Socket {
  mongoc_stream_t stream{};
  Fd fd;
  StreamContext* context;
  int error = 0;
  bool was_late = false;
  Socket(Fd connected, StreamContext& of) : fd(std::move(connected)), context(&of) {}
};

Socket& socket_of(mongoc_stream_t* stream) { return *reinterpret_cast<Socket*>(stream); }

// Waits for the socket, unless the caller wants to wait for no time.
bool wait(Socket& socket, short events, std::int32_t timeout)
{
  socket.error = EAGAIN;
  StreamContext& context = *socket.context;
  if (timeout == 0 || context.limit == nullptr) {
    return false;
  }
  const Instant start = context.clock->now();
  switch (wait_for(socket.fd.get(), events, *context.clock, *context.limit)) {
    case Waited::ready: return true;
    case Waited::stopped: context.failure = interrupted(); break;
    case Waited::late:
      context.failure = no_answer_in_time("no answer within " + elapsed(*context.clock, start, *context.limit));
      break;
  }
  socket.was_late = true;
  socket.error = ETIMEDOUT;
  return false;
}

ssize_t failed_by(Socket& socket, int error)
{
  socket.error = error;
  errno = error;
  return -1;
}

// Moves past `count` bytes.
std::span<mongoc_iovec_t> rest_of(std::span<mongoc_iovec_t> parts, std::size_t count)
{
  while (!parts.empty() && count >= parts.front().iov_len) {
    count -= parts.front().iov_len;
    parts = parts.subspan(1);
  }
  if (!parts.empty()) {
    parts.front().iov_base = static_cast<char*>(parts.front().iov_base) + count;
    parts.front().iov_len -= count;
  }
  return parts;
}

ssize_t write_parts(mongoc_stream_t* stream, mongoc_iovec_t* parts, std::size_t count, std::int32_t timeout)
{
  Socket& socket = socket_of(stream);
  if (socket.context->process != ::getpid()) {
    return failed_by(socket, EPIPE);
  }
  std::vector<mongoc_iovec_t> copy(parts, parts + count);
  ssize_t all = 0;
  for (std::span<mongoc_iovec_t> left(copy); !left.empty();) {
    msghdr message{};
    message.msg_iov = left.data();
    message.msg_iovlen = left.size();
    const ssize_t sent = ::sendmsg(socket.fd.get(), &message, MSG_NOSIGNAL);
    if (sent >= 0) {
      all += sent;
      left = rest_of(left, static_cast<std::size_t>(sent));
    } else if (errno != EINTR && errno != EAGAIN) {
      return failed_by(socket, errno);
    } else if (errno == EAGAIN && !wait(socket, POLLOUT, timeout)) {
      return all > 0 && socket.error == EAGAIN ? all : failed_by(socket, socket.error);
    }
  }
  return all;
}

ssize_t read_parts(mongoc_stream_t* stream, mongoc_iovec_t* parts, std::size_t count, std::size_t least,
                   std::int32_t timeout)
{
  Socket& socket = socket_of(stream);
  std::vector<mongoc_iovec_t> copy(parts, parts + count);
  std::size_t all = 0;
  for (std::span<mongoc_iovec_t> left(copy); !left.empty() && (all == 0 || all < least);) {
    msghdr message{};
    message.msg_iov = left.data();
    message.msg_iovlen = left.size();
    const ssize_t got = ::recvmsg(socket.fd.get(), &message, 0);
    if (got > 0) {
      socket.context->was_heard = true;
      all += static_cast<std::size_t>(got);
      left = rest_of(left, static_cast<std::size_t>(got));
    } else if (got == 0) {
      return all > 0 && all >= least ? static_cast<ssize_t>(all) : failed_by(socket, ECONNRESET);
    } else if (errno != EINTR && errno != EAGAIN) {
      return failed_by(socket, errno);
    } else if (errno == EAGAIN && !wait(socket, POLLIN, timeout)) {
      return all > 0 && all >= least ? static_cast<ssize_t>(all) : failed_by(socket, socket.error);
    }
  }
  return static_cast<ssize_t>(all);
}

// A socket that is late counts as broken, so that libmongoc does not wait for it on its own.
ssize_t poll_streams(mongoc_stream_poll_t* streams, std::size_t count, std::int32_t timeout)
{
  std::vector<pollfd> waits;
  StreamContext* context = nullptr;
  for (std::size_t i = 0; i < count; ++i) {
    context = socket_of(streams[i].stream).context;
    waits.push_back({socket_of(streams[i].stream).fd.get(), static_cast<short>(streams[i].events), 0});
  }
  const bool is_broken = std::ranges::any_of(waits, [](const pollfd& each) { return each.fd < 0; });
  if (context == nullptr || context->limit == nullptr || is_broken) {
    for (std::size_t i = 0; i < count; ++i) {
      streams[i].revents = is_broken && waits[i].fd >= 0 ? 0 : POLLERR;
    }
    return static_cast<ssize_t>(std::ranges::count_if(
        std::span(streams, count), [](const mongoc_stream_poll_t& each) { return each.revents != 0; }));
  }
  const CallLimits& limit = *context->limit;
  waits.push_back({limit.stop.fd(), POLLIN, 0});
  const Instant now = context->clock->now();
  const Instant until = timeout < 0 ? limit.deadline : std::min(limit.deadline, now + Millis(timeout));
  poll_until(waits, now, until);
  const bool is_over = waits.back().revents != 0 || context->clock->now() >= limit.deadline;
  if (is_over) {
    context->failure = waits.back().revents != 0 ? interrupted() : no_answer_in_time("no answer in time");
  }
  ssize_t ready = 0;
  for (std::size_t i = 0; i < count; ++i) {
    streams[i].revents = waits[i].revents != 0 || !is_over ? waits[i].revents : POLLERR;
    ready += streams[i].revents != 0 ? 1 : 0;
  }
  return ready;
}

int close_socket(mongoc_stream_t* stream)
{
  socket_of(stream).fd.reset();
  return 0;
}

int set_option(mongoc_stream_t* stream, int level, int name, void* value, mongoc_socklen_t length)
{
  return ::setsockopt(socket_of(stream).fd.get(), level, name, value, length);
}

bool is_closed(mongoc_stream_t* stream)
{
  char byte = 0;
  const ssize_t got = ::recv(socket_of(stream).fd.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR);
}

void destroy(mongoc_stream_t* stream)
{
  std::erase_if(socket_of(stream).context->open, [&](const OpenStream& each) { return each.socket == stream; });
  delete &socket_of(stream);
}

mongoc_stream_t* stream_of(Fd fd, StreamContext& context)
{
  auto* const socket = new Socket(std::move(fd), context);
  mongoc_stream_t& stream = socket->stream;
  stream.type = own_type;
  stream.destroy = destroy;
  stream.failed = destroy;
  stream.close = close_socket;
  stream.flush = [](mongoc_stream_t*) { return 0; };
  stream.writev = write_parts;
  stream.readv = read_parts;
  stream.setsockopt = set_option;
  stream.check_closed = is_closed;
  stream.poll = poll_streams;
  stream.timed_out = [](mongoc_stream_t* of) { return socket_of(of).was_late; };
  stream.should_retry = [](mongoc_stream_t* of) {
    const int error = socket_of(of).error;
    return error == EAGAIN || error == EINTR;
  };
  return &stream;
}

Endpoint endpoint_of(const mongoc_host_list_t& host)
{
  Endpoint endpoint;
  if (host.family == AF_UNIX) {
    endpoint.kind = Endpoint::Kind::unix_socket;
    endpoint.path = host.host;
  } else {
    endpoint.host = host.host;
    endpoint.port = host.port;
  }
  return endpoint;
}

// Whether the URL leads to this server alone, and libmongoc looks for no others.
bool is_only_server(const mongoc_uri_t* uri)
{
  const Libmongoc& lib = **libmongoc();
  const mongoc_host_list_t* const hosts = lib.mongoc_uri_get_hosts(uri);
  return hosts != nullptr && hosts->next == nullptr &&
         lib.mongoc_uri_get_option_as_utf8(uri, MONGOC_URI_REPLICASET, nullptr) == nullptr;
}

// Each of several servers gets its part of the time: libmongoc connects to one after the other before it asks any of them, also
// to those that it has heard of from others.
Result<Fd> connected(const mongoc_uri_t* uri, const mongoc_host_list_t& host, const StreamContext& context)
{
  if (context.limit == nullptr) {
    return interrupted();
  }
  const Instant now = context.clock->now();
  const auto left = context.limit->deadline - now;
  const CallLimits limit{is_only_server(uri) ? context.limit->deadline : now + left / 2, context.limit->stop};
  return connect_socket(endpoint_of(host), *context.clock, limit);
}

// Wraps the stream in TLS. nullptr: it failed, and the stream is gone.
mongoc_stream_t* encrypted(mongoc_stream_t* plain, const mongoc_uri_t* uri, const char* host, bson_error_t* error)
{
  const Libmongoc& lib = **libmongoc();
  const auto text = [&](const char* option) { return lib.mongoc_uri_get_option_as_utf8(uri, option, nullptr); };
  const auto flag = [&](const char* option) { return lib.mongoc_uri_get_option_as_bool(uri, option, false); };
  mongoc_ssl_opt_t options{};
  options.pem_file = text(MONGOC_URI_TLSCERTIFICATEKEYFILE);
  options.ca_file = text(MONGOC_URI_TLSCAFILE);
  options.weak_cert_validation = flag(MONGOC_URI_TLSALLOWINVALIDCERTIFICATES) || flag(MONGOC_URI_TLSINSECURE);
  options.allow_invalid_hostname = flag(MONGOC_URI_TLSALLOWINVALIDHOSTNAMES) || flag(MONGOC_URI_TLSINSECURE);
  mongoc_stream_t* const stream = lib.mongoc_stream_tls_new_with_hostname(plain, host, &options, 1);
  if (stream == nullptr) {
    std::strcpy(error->message, "cannot use the files for TLS in the URL");  // NOLINT(*-insecureAPI.strcpy)
    lib.mongoc_stream_destroy(plain);
    return nullptr;
  }
  constexpr std::int32_t longest_ms = 3'600'000;  // the deadline of the call ends it earlier
  if (!lib.mongoc_stream_tls_handshake_block(stream, host, longest_ms, error)) {
    lib.mongoc_stream_destroy(stream);
    return nullptr;
  }
  return stream;
}

}  // namespace

mongoc_stream_t* open_stream(const mongoc_uri_t* uri, const mongoc_host_list_t* host, void* context_of_client,
                             bson_error_t* error)
{
  StreamContext& context = *static_cast<StreamContext*>(context_of_client);
  error->domain = MONGOC_ERROR_STREAM;
  error->code = MONGOC_ERROR_STREAM_CONNECT;
  auto fd = connected(uri, *host, context);
  if (!fd) {
    // A stream without a socket, which fails. Without a stream libmongoc (1.23) locks a mutex that it holds already, when it
    // asks a server again that it knows.
    context.failure = fd.error();
    return stream_of(Fd(), context);
  }
  mongoc_stream_t* const socket = stream_of(*std::move(fd), context);
  mongoc_stream_t* stream = socket;
  const Libmongoc& lib = **libmongoc();
  if (lib.mongoc_uri_get_tls(uri)) {
    stream = encrypted(stream, uri, host->host, error);
  }
  if (stream == nullptr) {
    if (!context.failure) {
      context.failure = Error{ErrorCode::unreachable, "TLS: " + printable(error->message)};
    }
    return nullptr;
  }
  context.open.push_back({.server = host->host_and_port, .stream = stream, .socket = socket});
  return lib.mongoc_stream_buffered_new(stream, buffer_size);
}

int descriptor_of(const OpenStream& connection) { return socket_of(connection.socket).fd.get(); }

bool write_now(const OpenStream& connection, std::string_view bytes)
{
  mongoc_iovec_t part{.iov_base = const_cast<char*>(bytes.data()), .iov_len = bytes.size()};
  const ssize_t sent = connection.stream->writev(connection.stream, &part, 1, 0);
  return sent == static_cast<ssize_t>(bytes.size());
}

// Reads until nothing is left, because TLS may keep bytes of which the socket knows nothing.
bool read_now(const OpenStream& connection, std::string& bytes, std::size_t most)
{
  Socket& socket = socket_of(connection.socket);
  while (bytes.size() < most) {
    std::array<char, buffer_size> buffer{};
    mongoc_iovec_t part{.iov_base = buffer.data(), .iov_len = std::min(buffer.size(), most - bytes.size())};
    socket.error = 0;
    const ssize_t got = connection.stream->readv(connection.stream, &part, 1, 1, 0);
    if (got <= 0) {
      return socket.error == EAGAIN;
    }
    bytes.append(buffer.data(), static_cast<std::size_t>(got));
  }
  return true;
}

}  // namespace rlock::mongo
