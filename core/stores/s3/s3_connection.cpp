// SPDX-License-Identifier: Apache-2.0
#include "stores/s3/s3_connection.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <bitset>
#include <memory>
#include <string_view>
#include "base/broken_pipe.h"
#include "base/text.h"
#include "base/wait.h"
#include "stores/s3/libcurl.h"

namespace rlock::s3 {
namespace {

// An object with a record of 1 MiB, its log and its messages is smaller, and so is a page of a list.
constexpr std::size_t longest_answer = std::size_t{16} << 20;

constexpr std::string_view other_region = " (name the region of the bucket: ?region=NAME)";
constexpr std::string_view wrong_secret = " (check the access key, its secret and the region)";
constexpr std::string_view check_clock = " (this host's clock is wrong: have NTP keep it)";
constexpr std::string_view expired_session = "ExpiredToken";
constexpr std::string_view ask_again = " (it asks to be asked again later)";

// What the codes of the errors of Amazon S3 mean to a lock client, where the status says less. Other stores use the same codes.
struct CodeRow {
  std::string_view code;
  ErrorCode means;
  std::string_view advice;
};
constexpr auto codes = std::to_array<CodeRow>({
    {"NoSuchBucket", ErrorCode::server_not_ready, " (make the bucket, or check its name and the endpoint)"},
    {"InvalidBucketName", ErrorCode::config, " (check the name of the bucket)"},
    {"AuthorizationHeaderMalformed", ErrorCode::config, other_region},
    {"IllegalLocationConstraintException", ErrorCode::config, other_region},
    {expired_session, ErrorCode::refused, " (the session is over: get new credentials)"},
    {"InvalidToken", ErrorCode::refused, " (AWS_SESSION_TOKEN does not belong to the access key)"},
    {"AccessDenied", ErrorCode::refused, " (rlock acl prints the policy that rlock needs)"},
    {"RequestTimeTooSkewed", ErrorCode::server_not_ready, check_clock},
    {"RequestExpired", ErrorCode::server_not_ready, check_clock},
    {"KeyTooLongError", ErrorCode::config, " (use a shorter name of the lock, or a shorter prefix)"},
    {"EntityTooLarge", ErrorCode::config, " (there are too many waiters, or a value is too long)"},
    {"NotImplemented", ErrorCode::config, " (this store does not compare on write, so it keeps no locks)"},
    {"SlowDown", ErrorCode::unreachable, ask_again},
    {"ServiceUnavailable", ErrorCode::unreachable, ask_again},
    {"InternalError", ErrorCode::unreachable, ask_again},
    {"RequestTimeout", ErrorCode::unreachable, ask_again},
});

// The text of the first element of that name; no store nests or escapes those that rlock reads of errors.
std::string element(std::string_view xml, const std::string& name)
{
  const auto begin = xml.find("<" + name + ">");
  const auto end = xml.find("</" + name + ">");
  return begin == std::string_view::npos || end == std::string_view::npos || end < begin
             ? ""
             : std::string(xml.substr(begin + name.size() + 2, end - begin - name.size() - 2));
}

// By the status alone.
CodeRow row_of_status(long status)
{
  constexpr long redirect = 300, unauthorized = 401, forbidden = 403, server_error = 500;
  return status >= server_error                          ? CodeRow{"", ErrorCode::unreachable, ""}
         : status == unauthorized || status == forbidden ? CodeRow{"", ErrorCode::refused, wrong_secret}
         : status >= redirect && status < 400
             ? CodeRow{"", ErrorCode::config, other_region}
             : CodeRow{"", ErrorCode::config, " (is this a store with the API of Amazon S3?)"};
}

bool is_session_over(const HttpAnswer& http)
{
  constexpr long client_error = 400;
  return http.status >= client_error && element(http.body, "Code") == expired_session;
}

// The callbacks of libcurl.
std::size_t take_body(char* bytes, std::size_t, std::size_t size, void* http)
{
  std::string& body = static_cast<HttpAnswer*>(http)->body;
  if (body.size() + size > longest_answer) {
    return 0;
  }
  body.append(bytes, size);
  return size;
}

std::string header(CURL* easy, const char* name)
{
  curl_header* found = nullptr;
  constexpr int last_request = -1;
  return lib().curl_easy_header(easy, name, 0, CURLH_HEADER, last_request, &found) == CURLHE_OK ? found->value : "";
}

// libcurl's sockets have no FD_CLOEXEC.
curl_socket_t open_socket(void* sockets, curlsocktype, curl_sockaddr* address)
{
  const int fd = ::socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
  if (fd >= 0) {
    static_cast<std::set<int>*>(sockets)->insert(fd);
  }
  return fd < 0 ? CURL_SOCKET_BAD : fd;
}

int close_socket(void* sockets, curl_socket_t fd)
{
  static_cast<std::set<int>*>(sockets)->erase(fd);
  return ::close(fd);
}

const char* name_of(Request::Method method)
{
  return method == Request::Method::get ? "GET" : method == Request::Method::put ? "PUT" : "DELETE";
}

}  // namespace

// 409: another write of the object was under way. Nothing happened, and the condition may hold no more.
Result<Answer> answer_of(const HttpAnswer& http, const std::string& where, std::int64_t time_us)
{
  constexpr long ok = 200, no_content = 204, not_modified = 304, not_found = 404, conflict = 409, failed = 412;
  Answer answer;
  answer.etag = http.etag;
  answer.body = http.body;
  answer.time_us = time_us;
  answer.server = http.server;
  const std::string code = element(http.body, "Code");
  if (http.status == failed || (http.status == conflict && code != "BucketAlreadyExists")) {
    answer.kind = Answer::Kind::condition_failed;
  } else if (http.status == not_modified) {
    answer.kind = Answer::Kind::not_modified;
  } else if (http.status == not_found && code == "NoSuchKey") {
    answer.kind = Answer::Kind::not_there;
  } else if (http.status != ok && http.status != no_content) {
    const auto known = std::ranges::find(codes, code, &CodeRow::code);
    const CodeRow row = code.empty() || known == codes.end() ? row_of_status(http.status) : *known;
    const std::string message = printable(shortened(element(http.body, "Message"), 200));
    std::string text = where + ": " + (code.empty() ? "HTTP status " + std::to_string(http.status) : printable(code)) +
                       (message.empty() ? "" : ": " + message);
    if (row.advice == other_region && !http.region.empty()) {
      text += "; the bucket is in " + printable(http.region);
    }
    Error error = unreachable(std::move(text), row.advice);
    error.code = row.means;
    error.was_there = row.means == ErrorCode::unreachable;  // then it may serve soon, and a waiter stays in line
    return error;
  }
  if (answer.time_us <= 0) {
    return Error{ErrorCode::config, where + ": the answer has no Date, by which rlock keeps locks"};
  }
  return answer;
}

struct Connection::Transfer {
  HttpAnswer http;
  std::unique_ptr<CURL, FreeEasy> easy;
  std::unique_ptr<curl_slist, FreeList> headers;
  std::array<char, CURL_ERROR_SIZE> why{};
  std::optional<CURLcode> ended = std::nullopt;
  Instant sent_at;
  Instant heard_at;
  std::int64_t time_us = 0;
};

namespace {

constexpr std::size_t descriptors_looked_at = 256;  // libcurl gets the lowest free ones
using OpenDescriptors = std::bitset<descriptors_looked_at>;

OpenDescriptors open_descriptors()
{
  OpenDescriptors open;
  for (std::size_t fd = 0; fd < open.size(); ++fd) {
    open[fd] = ::fcntl(static_cast<int>(fd), F_GETFD) >= 0;
  }
  return open;
}

// The pair with which libcurl wakes a wait has no FD_CLOEXEC, and the job must not have it.
void close_new_ones_at_exec(const OpenDescriptors& open_before)
{
  for (std::size_t fd = 0; fd < open_before.size(); ++fd) {
    if (!open_before[fd]) {
      ::fcntl(static_cast<int>(fd), F_SETFD, FD_CLOEXEC);
    }
  }
}

}  // namespace

// The child of a fork has the sockets, too, and must not take leave of the server on them.
void Connection::drop()
{
  if (m_multi != nullptr && m_process == ::getpid()) {
    const WithoutBrokenPipe guard;
    lib().curl_multi_cleanup(m_multi);
  } else {
    for (const int fd : m_sockets) {
      ::close(fd);
    }
  }
  m_sockets.clear();
  m_multi = nullptr;
}

Result<Done> Connection::connect()
{
  if (m_multi != nullptr && m_process != ::getpid()) {
    drop();
  }
  if (m_multi == nullptr) {
    RETURN_IF_ERROR(libcurl());
    ASSIGN_OR_RETURN(m_credentials, find_credentials(m_spec, m_sources));
    const auto before = open_descriptors();
    m_multi = lib().curl_multi_init();
    close_new_ones_at_exec(before);
    m_process = ::getpid();
    m_was_there = false;
    if (m_multi == nullptr) {
      return Error{ErrorCode::os, "libcurl has no memory"};
    }
  }
  return Done{};
}

// Amazon's hosts are named by the bucket, unless a dot in it would fit no certificate.
std::string Connection::url_of(const Request& request) const
{
  const bool names_host = m_spec.endpoint.empty() && m_spec.bucket.find('.') == std::string::npos;
  const std::string host = m_spec.endpoint.empty() ? "https://" + (names_host ? m_spec.bucket + "." : "") + "s3." +
                                                         m_credentials.region + ".amazonaws.com"
                                                   : m_spec.endpoint;
  return host + (names_host ? "" : "/" + m_spec.bucket) + "/" +
         (request.key.empty() ? "" : m_spec.prefix + "/" + request.key) +
         (request.query.empty() ? "" : "?" + request.query);
}

Result<Done> Connection::begin(const Request& request, Transfer& transfer)
{
  transfer.easy.reset(lib().curl_easy_init());
  CURL* const easy = transfer.easy.get();
  if (easy == nullptr) {
    return Error{ErrorCode::os, "libcurl has no memory"};
  }
  // libcurl 7.88 signs no hash of the body unless a header has one, and this header for "none"; TLS protects the body.
  std::vector<std::string> lines{"Content-Type: application/octet-stream", "X-Amz-Content-Sha256: UNSIGNED-PAYLOAD"};
  const auto add = [&lines](const std::string& name, const std::string& value) {
    if (!value.empty()) {
      lines.push_back(name + ": " + value);
    }
  };
  add("X-Amz-Security-Token", m_credentials.token);
  add("If-Match", request.if_match);
  add("If-None-Match", request.if_none_match);
  for (const auto& [name, value] : request.metadata) {
    add("X-Amz-Meta-" + name, value);
  }
  for (const std::string& line : lines) {
    curl_slist* const longer = lib().curl_slist_append(transfer.headers.get(), line.c_str());
    if (longer == nullptr) {
      return Error{ErrorCode::os, "libcurl has no memory"};  // without its condition a write would replace any state
    }
    [[maybe_unused]] auto* const shorter = transfer.headers.release();
    transfer.headers.reset(longer);
  }
  const auto set = [easy](CURLoption option, auto value) { lib().curl_easy_setopt(easy, option, value); };
  set(CURLOPT_URL, url_of(request).c_str());
  set(CURLOPT_PROTOCOLS_STR, "http,https");
  set(CURLOPT_CUSTOMREQUEST, name_of(request.method));
  if (request.method == Request::Method::put) {
    set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
    set(CURLOPT_COPYPOSTFIELDS, request.body.c_str());
  }
  set(CURLOPT_HTTPHEADER, transfer.headers.get());
  const std::string signature = "aws:amz:" + m_credentials.region + ":s3";
  if (lib().curl_easy_setopt(easy, CURLOPT_AWS_SIGV4, signature.c_str()) != CURLE_OK) {
    return Error{ErrorCode::config,
                 "this libcurl does not sign requests for a bucket, and would send the secret itself"};
  }
  set(CURLOPT_USERNAME, m_credentials.access_key.c_str());
  set(CURLOPT_PASSWORD, m_credentials.secret.c_str());
  set(CURLOPT_NOSIGNAL, 1L);
  set(CURLOPT_QUICK_EXIT, 1L);  // or else the end of a request waits for the thread that looks up the name
  set(CURLOPT_ERRORBUFFER, transfer.why.data());
  set(CURLOPT_WRITEFUNCTION, take_body);
  set(CURLOPT_WRITEDATA, static_cast<void*>(&transfer.http));
  set(CURLOPT_OPENSOCKETFUNCTION, open_socket);
  set(CURLOPT_OPENSOCKETDATA, static_cast<void*>(&m_sockets));
  set(CURLOPT_CLOSESOCKETFUNCTION, close_socket);
  set(CURLOPT_CLOSESOCKETDATA, static_cast<void*>(&m_sockets));
  set(CURLOPT_PRIVATE, static_cast<void*>(&transfer));
  transfer.sent_at = m_clock->now();
  return lib().curl_multi_add_handle(m_multi, easy) == CURLM_OK
             ? Result(Done{})
             : Error{ErrorCode::internal, "libcurl takes no request"};
}

// Returns when all have ended. An Error: the time is over, or a stop is requested.
Result<Done> Connection::perform(std::span<Transfer> transfers, const CallLimits& limit)
{
  for (;;) {
    int running = 0;
    lib().curl_multi_perform(m_multi, &running);
    int left = 0;
    while (const CURLMsg* const message = lib().curl_multi_info_read(m_multi, &left)) {
      const auto ended = std::ranges::find_if(
          transfers, [message](const Transfer& each) { return each.easy.get() == message->easy_handle; });
      if (message->msg == CURLMSG_DONE && ended != transfers.end()) {
        ended->ended = message->data.result;
        ended->heard_at = m_clock->now();
        finish(*ended);
      }
    }
    if (running == 0) {
      return Done{};
    }
    if (limit.stop.requested()) {
      return interrupted();
    }
    const Instant now = m_clock->now();
    if (now >= limit.deadline) {
      return no_answer_in_time((m_was_there ? "no answer from " : "cannot reach ") + m_spec.url + " within " +
                               elapsed(*m_clock, transfers.front().sent_at, limit));
    }
    curl_waitfd stop{.fd = limit.stop.fd(), .events = CURL_WAIT_POLLIN, .revents = 0};
    lib().curl_multi_poll(m_multi, &stop, limit.stop.fd() >= 0 ? 1 : 0, poll_timeout(now, limit.deadline), nullptr);
  }
}

void Connection::finish(Transfer& transfer)
{
  CURL* const easy = transfer.easy.get();
  HttpAnswer& http = transfer.http;
  lib().curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &http.status);
  http.etag = header(easy, "ETag");
  http.region = header(easy, "X-Amz-Bucket-Region");
  http.server = header(easy, "Server");
  constexpr std::int64_t second_us = 1'000'000;
  transfer.time_us = lib().curl_getdate(header(easy, "Date").c_str(), nullptr) * second_us;
  m_was_there = m_was_there || http.status != 0;
}

Result<Answer> Connection::result_of(const Transfer& transfer)
{
  if (transfer.ended.value_or(CURLE_OPERATION_TIMEDOUT) != CURLE_OK) {
    const std::string why = transfer.why[0] != '\0' ? transfer.why.data() : lib().curl_easy_strerror(*transfer.ended);
    Error error =
        unreachable((m_was_there ? "lost the connection to " : "cannot reach ") + m_spec.url + ": " + printable(why),
                    m_was_there ? "" : " (check the bucket, the region and the endpoint)");
    error.was_there = m_was_there;
    error.nobody_there = transfer.ended == CURLE_COULDNT_CONNECT;
    return error;
  }
  auto answer = answer_of(transfer.http, m_spec.url, transfer.time_us);
  if (answer) {
    answer->sent_at = transfer.sent_at;
    answer->heard_at = transfer.heard_at;
  }
  return answer;
}

bool Connection::has_new_credentials() const
{
  const auto found = find_credentials(m_spec, m_sources);
  return found && *found != m_credentials;
}

// A waiter must outlast its session: another program writes the credentials of the next one into the shared files.
std::vector<Result<Answer>> Connection::ask_all(std::span<const Request> requests, const CallLimits& limit)
{
  auto answers = ask_once(requests, limit);
  return m_is_session_over && has_new_credentials() ? ask_once(requests, limit) : answers;
}

std::vector<Result<Answer>> Connection::ask_once(std::span<const Request> requests, const CallLimits& limit)
{
  const WithoutBrokenPipe guard;
  std::vector<Result<Answer>> answers;
  Result<Done> done = connect();
  std::vector<Transfer> transfers(requests.size());
  for (std::size_t i = 0; done && i < requests.size(); ++i) {
    done = begin(requests[i], transfers[i]);
  }
  done = done ? perform(transfers, limit) : done;
  m_is_session_over = std::ranges::all_of(transfers, [](const Transfer& each) { return is_session_over(each.http); });
  for (Transfer& each : transfers) {
    answers.push_back(done ? result_of(each) : Result<Answer>(done.error()));
    if (each.easy != nullptr && m_multi != nullptr) {
      lib().curl_multi_remove_handle(m_multi, each.easy.get());
    }
  }
  if (!std::ranges::all_of(answers, [](const Result<Answer>& each) { return static_cast<bool>(each); })) {
    transfers.clear();
    drop();
  }
  return answers;
}

Result<Answer> Connection::ask(const Request& request, const CallLimits& limit)
{
  return std::move(ask_all({&request, 1}, limit).front());
}

}  // namespace rlock::s3
