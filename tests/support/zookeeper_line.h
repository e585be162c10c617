// SPDX-License-Identifier: Apache-2.0
// A lock of ZooKeeper that rlock and the real clients of Curator or kazoo take.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>
#include "stores/zookeeper/zookeeper_native_line.h"
#include "support/integration.h"
#include "support/zookeeper_fixture.h"

namespace rlock::test {

class ZookeeperLine {
 public:
  // Skips the test case where there is no such client.
  explicit ZookeeperLine(record::LineFormat format, std::string chroot = {}, int nodes = 1);

  [[nodiscard]] std::string format() const { return std::string(name_of(m_format.clients)); }
  // Returns when another member leads.
  void kill_leader();
  [[nodiscard]] Words with_server(Words args) const;
  [[nodiscard]] Finished rlock(Words args) const { return run_rlock(with_server(std::move(args))); }
  [[nodiscard]] Words run_words(const Words& options, const Words& job) const;
  [[nodiscard]] Process start_rlock_run(const Words& options, const Words& job) const
  {
    return start_rlock(with_server(run_words(options, job)));
  }
  [[nodiscard]] Finished rlock_run(const Words& options, const Words& job) const
  {
    return rlock(run_words(options, job));
  }
  // `kind`: what CuratorLock.java takes.
  [[nodiscard]] Process start_native(const Words& job, Millis session = Millis{30'000},
                                     const std::string& kind = "mutex") const;

  // The names of the nodes, the first one first.
  [[nodiscard]] std::vector<std::string> contenders() const;
  void await_contenders(std::size_t number) const;
  [[nodiscard]] std::string first_owner() const;
  void remove(const std::string& node) const;
  void put(const std::string& node) const;
  [[nodiscard]] std::int64_t czxid(const std::string& node) const;

 private:
  [[nodiscard]] CallLimits soon() const;

  const std::string m_chroot;
  const record::LineFormat m_format;
  const Words m_native;
  std::optional<ZookeeperNodes> m_nodes;
  const BootClock m_clock;
  std::unique_ptr<zookeeper::Client> m_client;
};

inline constexpr Millis native_start{30'000};  // of a JVM on a busy machine

// Lines of a job.
std::string until_exists(const std::filesystem::path& file);
Words shell(const std::string& line);
std::string noting(const std::string& word);
std::string order();  // the words that jobs have noted
void create(const std::filesystem::path& file);

}  // namespace rlock::test
