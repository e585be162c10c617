// SPDX-License-Identifier: Apache-2.0
// One server of a quorum and the thread that sends its requests. Because of the thread, the steps of a request need no
// asynchronous form: resolving a name, connecting, authenticating, sending a script that the server does not know yet.
//
// The requests to a server run one after the other, so each answer belongs to the request that waits for it. A request
// without an answer costs its connection, so a late answer cannot be taken for the answer to another request.
#pragma once

#include "base/stop.h"
#include "lock/store.h"

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace rlock {

// A hold whose release got no answer.
struct Unreleased {
  LockSpec spec;
  Hold hold;
  Instant expires_at;  // when the ttl has ended the lock
};

struct QuorumServer {
  std::string shown;  // for people
  std::unique_ptr<LockStore> store;
  // Tells the marker news, and asks since when the server has its data. Empty: the server never loses its data.
  std::function<Result<DataAge>(const MarkerNews&, const CallLimits&)> marker;
  std::int64_t has_data_since = 0;          // DataAge::since of the last answer
  Millis told_ttl{0};                       // the longest ttl that the marker was told
  Instant tell_again_at{};                  // when the marker has to be told the same ttl again
  std::vector<Unreleased> unreleased = {};  // to be released before the next acquisition on this server
};

// Threads: one thread calls the methods; it is not the worker's thread, which starts with the first request.
class ServerWorker {
 public:
  // Runs on the worker's thread or in work_here(). A task ends soon after the stop is requested, and by the deadline (far_future
  // on the worker's thread). False: the server did not answer.
  using Task = std::function<bool(QuorumServer& server, const CallLimits& limit)>;

  // What becomes of the waiting requests of the same topic, so that requests to a server that hangs do not pile up.
  enum class PostMode {
    repeat,     // the new request replaces a waiting `repeat`, and is sent after all others
    replace,    // the new request replaces all of them
    interrupt,  // the same; and the request that is in progress is interrupted, whatever its topic
  };

  explicit ServerWorker(QuorumServer server);  // throws std::system_error when there is no free descriptor
  ~ServerWorker() { stop_thread(); }           // drops the requests that have not begun
  ServerWorker(const ServerWorker&) = delete;
  ServerWorker& operator=(const ServerWorker&) = delete;

  // Appends the task. True: the server is unresponsive, because the last request has no answer, or none yet.
  bool post(std::string topic, PostMode mode, Task task);

  // Where the system has no thread left, a posted task waits for work_here(), which runs all that wait in the calling thread.
  // The next post tries again to start the thread.
  [[nodiscard]] bool needs_work_here() const { return !m_thread.joinable() && !is_idle(); }
  void work_here(const CallLimits& limit);

  // Interrupts the request in progress if another is waiting that must be sent, as a release must. What is repeated, such as the
  // confirmation of a grant, waits for the end of that grant, because this server would never get the lock otherwise.
  void interrupt_for_next();
  [[nodiscard]] bool is_idle() const;

  // Interrupts the request in progress and ends the thread until the next post.
  void stop_thread();

 private:
  struct Posted {
    std::string topic;
    PostMode mode;
    Task task;
  };
  void work();
  Posted begin_next() REQUIRES(m_mutex);
  void end(bool answered) REQUIRES(m_mutex);
  void interrupt() REQUIRES(m_mutex);

  QuorumServer m_server;  // used by the worker's thread alone, or by work_here()
  mutable Mutex m_mutex;
  std::condition_variable m_news;
  std::deque<Posted> m_posted GUARDED_BY(m_mutex);
  bool m_busy GUARDED_BY(m_mutex) = false;
  bool m_failed GUARDED_BY(m_mutex) = false;       // the last request had no answer
  bool m_interrupted GUARDED_BY(m_mutex) = false;  // the request in progress
  bool m_over GUARDED_BY(m_mutex) = false;
  StopSource m_stop GUARDED_BY(m_mutex);
  std::thread m_thread;
};

}  // namespace rlock
