// SPDX-License-Identifier: Apache-2.0
// The lock "k" that rlock and the real lock clients of its store take: etcdctl, Curator or kazoo.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>
#include "stores/zookeeper/zookeeper_native_line.h"
#include "support/etcd_fixture.h"
#include "support/integration.h"
#include "support/job_lines.h"
#include "support/zookeeper_fixture.h"

namespace rlock::test {

inline constexpr Millis native_start{30'000};  // of a JVM on a busy machine

class NativeLine {
 public:
  virtual ~NativeLine() = default;
  NativeLine(const NativeLine&) = delete;
  NativeLine& operator=(const NativeLine&) = delete;

  [[nodiscard]] std::string format() const { return std::string(name_of(m_format)); }
  [[nodiscard]] Words with_server(Words args) const { return with_url(url(), std::move(args)); }
  [[nodiscard]] Finished rlock(Words args) const { return run_at(url(), std::move(args)); }
  [[nodiscard]] Process start_rlock_run(const Words& options, const Words& job) const;
  [[nodiscard]] Finished rlock_run(const Words& options, const Words& job) const;
  [[nodiscard]] std::string status() const { return rlock({"status", "--json", "k"}).out; }
  void await_place(int place) const { test::await_place(url(), place); }

  // Runs the job under the lock of the native client. `session`: how long the lock outlives a client that is killed.
  [[nodiscard]] virtual Process start_native(const Words& job, Millis session = native_start) const = 0;
  // The names of the contenders, the first one first.
  [[nodiscard]] virtual std::vector<std::string> contenders() const = 0;
  void await_contenders(std::size_t number) const;
  [[nodiscard]] virtual std::string first_owner() const = 0;
  [[nodiscard]] virtual std::string fence_of(const std::string& contender) const = 0;
  virtual void remove(const std::string& contender) const = 0;

 protected:
  // `mode`: the options of rlock run.
  NativeLine(NativeFormat format, Words mode) : m_format(format), m_mode(std::move(mode)) {}
  [[nodiscard]] virtual std::string url() const = 0;

 private:
  [[nodiscard]] Words run_words(const Words& options, const Words& job) const;

  NativeFormat m_format;
  Words m_mode;
};

class EtcdLine final : public NativeLine {
 public:
  explicit EtcdLine(EtcdOptions options = {}) : NativeLine(NativeFormat::etcd, {}), m_server(std::move(options)) {}
  [[nodiscard]] EtcdServer& server() { return m_server; }

  [[nodiscard]] Process start_native(const Words& job, Millis session = native_start) const override;
  [[nodiscard]] std::vector<std::string> contenders() const override;
  [[nodiscard]] std::string first_owner() const override { return contenders().front().substr(2); }
  [[nodiscard]] std::string fence_of(const std::string& contender) const override;
  void remove(const std::string& contender) const override { (void)m_server.etcdctl({"del", contender}); }

 private:
  [[nodiscard]] std::string url() const override { return m_server.url(); }

  EtcdServer m_server;
};

struct ZookeeperLineOptions {
  bool has_readers = false;    // that of a read-write lock
  Words mode = {};             // the options of each rlock run: -s, -x
  std::string kind = "mutex";  // what CuratorLock.java takes
  std::string chroot = {};
  std::size_t nodes = 1;
};

class ZookeeperLine final : public NativeLine {
 public:
  // Skips the test case where there is no such client.
  explicit ZookeeperLine(NativeFormat clients, ZookeeperLineOptions options = {});
  // Returns when another member leads.
  void kill_leader();

  [[nodiscard]] Process start_native(const Words& job, Millis session = native_start) const override;
  [[nodiscard]] Process start_curator(const std::string& kind, const Words& job, Millis session = native_start) const;
  [[nodiscard]] std::vector<std::string> contenders() const override;
  [[nodiscard]] std::string first_owner() const override;
  [[nodiscard]] std::string fence_of(const std::string& contender) const override;
  void remove(const std::string& contender) const override;
  void put(const std::string& node) const;

 private:
  [[nodiscard]] std::string url() const override { return m_nodes->url(m_options.chroot); }
  [[nodiscard]] std::string path(const std::string& node) const { return m_options.chroot + "/k/" + node; }
  [[nodiscard]] zookeeper::Answer ask(const zookeeper::Operation& operation) const;

  const ZookeeperLineOptions m_options;
  const record::LineFormat m_clients;
  const Words m_native;
  std::optional<ZookeeperServer> m_nodes;
  const BootClock m_clock;
  std::unique_ptr<zookeeper::Client> m_client;
};

}  // namespace rlock::test
