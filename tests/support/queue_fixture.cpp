// SPDX-License-Identifier: Apache-2.0
#include "support/queue_fixture.h"

#include "support/crowd.h"
#include "support/temp_dir.h"
#include "support/topology.h"
#include "support/wait_until.h"

#include <algorithm>
#include <fstream>
#include <numeric>
#include <utility>

#include "lock/holder.h"
#include "lock/requests.h"

namespace rlock::test {
namespace {

std::size_t listening(const RedisCluster& cluster)
{
  return as_texts(cluster.owner("k").command({"PUBSUB", "SHARDCHANNELS", "rlock:owner:*"})).size();
}

}  // namespace

template <typename Server>
QueueFixtureAt<Server>::QueueFixtureAt(typename Server::Options options)
    : server(std::move(options)), m_log(make_temp_dir("line") / "log")
{
  skip_on_quorum("a quorum has no queue");
}

template <typename Server>
std::vector<std::string> QueueFixtureAt<Server>::rlock(const std::string& verb, std::vector<std::string> words) const
{
  words.insert(words.begin(), {verb, "-S", server.url(), "-k", "k"});
  return rlock_argv(std::move(words));
}

template <typename Server>
Process QueueFixtureAt<Server>::start(Words options, const Words& job) const
{
  return Process(rlock("run", with_job(std::move(options), job)));
}

template <typename Server>
Process QueueFixtureAt<Server>::hold(const std::string& ttl, std::vector<std::string> job)
{
  Process holder = start({"--ttl", ttl}, job);
  wait_until([&] { return as_int(server.command({"EXISTS", "k"})) == 1; }, "the lock is taken");
  return holder;
}

template <typename Server>
void QueueFixtureAt<Server>::add_waiter(const std::string& ttl, const std::string& work,
                                        std::vector<std::string> options)
{
  const std::int64_t before = queue_length();
  const std::string job = "echo " + std::to_string(waiters.size()) + " >> " + m_log.string() + work;
  options.insert(options.end(), {"--ttl", ttl, "--", "sh", "-c", job});
  waiters.emplace_back(rlock("run", std::move(options)));
  wait_until([&] { return queue_length() > before; }, "one more stands in line");
}

template <typename Server>
void QueueFixtureAt<Server>::add_waiters(int count, const std::string& ttl)
{
  for (int i = 0; i < count; ++i) {
    add_waiter(ttl);
  }
}

template <typename Server>
void QueueFixtureAt<Server>::await_subscriptions(std::size_t besides)
{
  const std::size_t in_front =
      far_waiters_may_sleep() ? std::min<std::size_t>(waiters.size(), listening_waiters) : waiters.size();
  wait_until([&] { return listening(server) >= in_front + besides; }, "all waiters that must listen do");
}

template <typename Server>
std::int64_t QueueFixtureAt<Server>::queue_length() const
{
  return as_int(server.command({"ZCARD", "rlock:queue:{k}"}));
}

template <typename Server>
pid_t QueueFixtureAt<Server>::holder() const
{
  for (const std::string& text : as_texts(server.command({"HVALS", "rlock:holder:{k}"}))) {
    if (const auto info = decode_holder(text); info && info->pid > 0) {
      return static_cast<pid_t>(info->pid);
    }
  }
  return 0;
}

template <typename Server>
std::vector<int> QueueFixtureAt<Server>::started_jobs() const
{
  std::vector<int> numbers;
  std::ifstream file(m_log);
  for (int number = 0; file >> number;) {
    numbers.push_back(number);
  }
  return numbers;
}

template class QueueFixtureAt<RedisServer>;
template class QueueFixtureAt<RedisCluster>;

std::vector<int> numbers_below(int count)
{
  std::vector<int> numbers(static_cast<std::size_t>(count));
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

}  // namespace rlock::test
