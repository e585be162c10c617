// SPDX-License-Identifier: Apache-2.0
// A server or a cluster with rlock holders and waiters of one lock, "k".
#pragma once

#include "support/process.h"
#include "support/redis_cluster.h"
#include "support/redis_fixture.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace rlock::test {

template <typename Server>
class QueueFixtureAt {
 public:
  explicit QueueFixtureAt(typename Server::Options options = {});

  // Starts a holder, which has the lock at the return and runs `job`.
  Process hold(const std::string& ttl, std::vector<std::string> job = {"sleep", "100"});

  // Starts `rlock run OPTIONS -- JOB`, and returns at once.
  [[nodiscard]] Process start(Words options, const Words& job) const;

  // Starts a waiter, and returns when the waiter is in the queue. Its job writes the waiter's number and then runs `work`, shell
  // code.
  void add_waiter(const std::string& ttl = "30s", const std::string& work = "", std::vector<std::string> options = {});
  void add_waiters(int count, const std::string& ttl = "30s");  // whose jobs end at once
  // Returns when all waiters that must listen, and `besides` holders, have subscribed.
  void await_subscriptions(std::size_t besides = 0);

  [[nodiscard]] std::int64_t queue_length() const;
  [[nodiscard]] pid_t holder() const;                   // the process that has the lock; 0: no rlock process
  [[nodiscard]] std::vector<int> started_jobs() const;  // numbers of the waiters whose jobs began, in order

  // Runs rlock with this server and these words.
  [[nodiscard]] std::vector<std::string> rlock(const std::string& verb, std::vector<std::string> words) const;

  Server server;
  std::vector<Process> waiters;  // in order of arrival

 private:
  std::filesystem::path m_log;
};

using QueueFixture = QueueFixtureAt<RedisServer>;
using ClusterQueueFixture = QueueFixtureAt<RedisCluster>;
extern template class QueueFixtureAt<RedisServer>;
extern template class QueueFixtureAt<RedisCluster>;

std::vector<int> numbers_below(int count);

}  // namespace rlock::test

#define QUEUE_CASE(title) CASE_WITH(rlock::test::QueueFixture, queue, title)
