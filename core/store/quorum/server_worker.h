// SPDX-License-Identifier: Apache-2.0
// One server of a quorum, asked on a thread of its own.
//
// A thread, because then connecting, looking up a name, authenticating, sending a script that is not known yet and all
// else that a store does for one answer needs no second form that can be left half-way. What is asked of a server is
// asked one after the other, each answer belongs to the request that waited for it, and a request that gets none costs its
// connection: a late answer finds nobody.
#pragma once

#include "lock/data_age.h"
#include "lock/store.h"

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace rlock {

// A hold whose release got no answer.
struct Unreleased {
  LockSpec spec;
  Hold hold;
  Instant over;  // when the lock has ended by itself
};

struct QuorumServer {
  std::string shown;  // for people
  std::unique_ptr<LockStore> store;
  // Since when it has its data. Missing: it never loses its data.
  std::function<Result<DataAge>(const MarkerNews&, const CallLimits&)> marker;
  std::int64_t has_data_since = 0;          // DataAge::since of the last answer
  Millis told_ttl{0};                       // the longest ttl that it was told,
  Instant tell_again_at{};                  // until when that is enough
  std::vector<Unreleased> unreleased = {};  // released before anything else is acquired there
};

// The thread is started by the first request. Its methods are for one other thread.
class ServerWorker {
 public:
  // False: there was no answer. Called from the thread; over soon when the stop is readable.
  using Task = std::function<bool(QuorumServer& server, StopToken stop)>;

  explicit ServerWorker(QuorumServer server);  // std::system_error: no descriptor to be had
  ~ServerWorker() { rest(); }                  // what was not begun never is
  ServerWorker(const ServerWorker&) = delete;
  ServerWorker& operator=(const ServerWorker&) = delete;

  // After all that was posted before. But a last word goes instead of all that was posted on the same topic and has not
  // begun, and a further one instead of such a one: what is asked of a server that hangs does not pile up. An urgent
  // one is a last one for which what is being asked is cut off.
  // True: the answer is not worth waiting for, because there was none to the request before, or is none yet.
  enum class Word { further, last, urgent };
  // Where there is no thread to be had it is not asked, and no answer comes.
  bool post(std::string topic, Word word, Task task);

  // Cuts off what is being asked if there is more to ask.
  void hurry();
  [[nodiscard]] bool is_idle() const;

  // Cuts off what is being asked, and ends the thread until the next post.
  void rest();

 private:
  struct Posted {
    std::string topic;
    Word word;
    Task task;
  };
  void work();
  void cut_off();  // with m_mutex held

  QuorumServer m_server;  // the thread's own
  mutable std::mutex m_mutex;
  std::condition_variable m_news;
  std::deque<Posted> m_posted;  // this and the rest: guarded by m_mutex
  bool m_busy = false;
  bool m_failed = false;
  bool m_interrupted = false;
  bool m_over = false;
  StopSource m_stop;
  std::thread m_thread;  // not guarded
};

}  // namespace rlock
