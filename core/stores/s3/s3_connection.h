// SPDX-License-Identifier: Apache-2.0
// Signed requests to one bucket by libcurl, each of which ends by its deadline. Private to stores/s3.
#pragma once

#include <sys/types.h>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>
#include "base/clock.h"
#include "base/defaults.h"
#include "base/result.h"
#include "stores/s3/s3_credentials.h"
#include "stores/s3/s3_url.h"

namespace rlock::s3 {

// The Date of an answer has whole seconds.
inline constexpr Millis date_step{1000};

struct Request {
  enum class Method { get, put, remove };
  Method method = Method::get;
  std::string key;            // below the prefix; empty: the bucket
  std::string query = {};     // its parameters sorted by name, because libcurl signs them as they stand
  std::string if_match = {};  // an ETag
  std::string if_none_match = {};
  std::string body = {};
  std::vector<std::pair<std::string, std::string>> metadata = {};  // for people; printable ASCII
};

// What the store answered. A request whose condition did not hold is an answer, too.
struct Answer {
  enum class Kind { done, not_modified, not_there, condition_failed };
  Kind kind = Kind::done;
  std::string etag;
  std::string body;
  std::int64_t time_us = 0;  // the Date of the answer, in whole seconds
  Instant sent_at;
  Instant heard_at;
  std::string server;  // what it calls itself
};

// An answer as HTTP has it.
struct HttpAnswer {
  long status = 0;
  std::string body;
  std::string etag;
  std::string region;  // of the bucket
  std::string server;
};

// What the answer means, by the table of errors. A pure function. `where`: the URL. The code of an Error:
//   unreachable       the store has failed: the request may have happened
//   refused           wrong or missing credentials, or a missing right
//   server_not_ready  there is no such bucket; the clock of this host is wrong
//   config            the bucket is in another region, a key is too long, or this is no store of objects
Result<Answer> answer_of(const HttpAnswer& http, const std::string& where, std::int64_t time_us);

// Not thread-safe. After an Error the connections are dropped. Where the session of the credentials is over and the shared files have
// those of another one, the requests are made again with these.
class Connection {
 public:
  // `clock` must outlive it. Connects at the first request.
  Connection(ConnectionSpec spec, const Clock& clock, CredentialSources sources = sources_of_process())
      : m_spec(std::move(spec)), m_clock(&clock), m_sources(std::move(sources))
  {
  }
  ~Connection() { drop(); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  Result<Answer> ask(const Request& request, const CallLimits& limit);
  // Makes all requests at the same time, and returns the answers in their order.
  std::vector<Result<Answer>> ask_all(std::span<const Request> requests, const CallLimits& limit);

  void drop();
  [[nodiscard]] const ConnectionSpec& spec() const { return m_spec; }
  [[nodiscard]] const std::string& where() const { return m_spec.url; }
  // Of the last connection.
  [[nodiscard]] const Credentials& credentials() const { return m_credentials; }
  [[nodiscard]] const Clock& clock() const { return *m_clock; }

 private:
  struct Transfer;

  std::vector<Result<Answer>> ask_once(std::span<const Request> requests, const CallLimits& limit);
  [[nodiscard]] bool has_new_credentials() const;
  Result<Done> connect();
  Result<Done> begin(const Request& request, Transfer& transfer);
  Result<Done> perform(std::span<Transfer> transfers, const CallLimits& limit);
  void finish(Transfer& transfer);
  Result<Answer> result_of(const Transfer& transfer);
  [[nodiscard]] std::string url_of(const Request& request) const;

  ConnectionSpec m_spec;
  const Clock* m_clock;
  CredentialSources m_sources;
  Credentials m_credentials;
  void* m_multi = nullptr;         // of libcurl, with its open connections
  pid_t m_process = 0;             // that connected: another process must not write to its sockets
  std::set<int> m_sockets;         // open ones
  bool m_was_there = false;        // an answer has come since connect()
  bool m_is_session_over = false;  // each of the last answers says so, hence nothing happened
};

}  // namespace rlock::s3
