// SPDX-License-Identifier: Apache-2.0
#include "support/native_line.h"

#include "support/paths.h"
#include "support/skip.h"

namespace rlock::test {
namespace {

using namespace std::chrono_literals;

namespace fs = std::filesystem;
const fs::path interop = fs::path(RLOCK_SOURCE_DIR) / "tests/interop";
const fs::path libraries = fs::path(RLOCK_SOURCE_DIR) / "build/interop";

// The Python that has kazoo; empty: none has.
std::string python_with_kazoo()
{
  for (const char* python : {"python3", "/usr/bin/python3"}) {
    if (Process({python, "-c", "import kazoo"}).wait(30s) == success) {
      return python;
    }
  }
  return {};
}

// What runs a command under a native lock, but for the arguments of the lock.
Words native_client(NativeFormat format)
{
  if (format == NativeFormat::kazoo) {
    const std::string python = python_with_kazoo();
    skip_if(python.empty(), "no kazoo (install python3-kazoo)");
    return {python, "-B", (interop / "kazoo_lock.py").string()};
  }
  const fs::path curator = libraries / "curator";
  skip_if(!fs::exists(curator / "classes"), "no Curator (sh tests/interop/run.sh --download)");
  return {"java",
          "-Xmx64m",
          "-XX:+UseSerialGC",
          "-XX:TieredStopAtLevel=1",
          "-cp",
          (curator / "*").string() + ":" + (curator / "classes").string(),
          "CuratorLock"};
}

}  // namespace

Words NativeLine::run_words(const Words& options, const Words& job) const
{
  return with_server(with_job(joined(joined({"run", "--format", format(), "-k", "k"}, m_mode), options), job));
}

Process NativeLine::start_rlock_run(const Words& options, const Words& job) const
{
  return start_rlock(run_words(options, job));
}

Finished NativeLine::rlock_run(const Words& options, const Words& job) const
{
  return run_rlock(run_words(options, job));
}

void NativeLine::await_contenders(std::size_t number) const
{
  wait_until([&] { return contenders().size() == number; }, std::to_string(number) + " contenders are in the line");
}

Process EtcdLine::start_native(const Words& job, Millis session) const
{
  std::string endpoints;
  for (std::size_t node = 0; node < m_server.number_of_members(); ++node) {
    endpoints += (node == 0 ? "http://127.0.0.1:" : ",http://127.0.0.1:") + std::to_string(m_server.port_of(node));
  }
  const Words lock{"etcdctl", "--endpoints=" + endpoints,
                   "lock",    "--ttl=" + std::to_string(session / std::chrono::seconds(1)),
                   "k",       "--"};
  return Process(joined(lock, job), {.env = {{"ETCDCTL_API", "3"}}});
}

std::vector<std::string> EtcdLine::contenders() const
{
  auto keys =
      lines_of(m_server.etcdctl({"get", "--prefix", "--keys-only", "--sort-by=CREATE", "--order=ASCEND", "k/"}));
  std::erase(keys, "");
  return keys;
}

std::string EtcdLine::fence_of(const std::string& contender) const
{
  const std::string fields = m_server.etcdctl({"get", contender, "-w", "fields"});
  const std::string name = "\"CreateRevision\" : ";
  const auto at = fields.find(name);
  REQUIRE_MESSAGE(at != std::string::npos, fields);
  return first_line(fields.substr(at + name.size()));
}

ZookeeperLine::ZookeeperLine(NativeFormat clients, ZookeeperLineOptions options)
    : NativeLine(clients, options.mode),
      m_options(std::move(options)),
      m_clients(clients, m_options.has_readers),
      m_native(native_client(clients))
{
  m_nodes.emplace(ZookeeperOptions{.nodes = m_options.nodes});
  m_client = m_nodes->client(m_nodes->url(), 60s, m_clock);
}

void ZookeeperLine::kill_leader()
{
  m_nodes->kill_member(m_nodes->leader());
  wait_until([&] { return m_nodes->find_leader().has_value(); }, "another member leads");
}

Process ZookeeperLine::start_native(const Words& job, Millis session) const
{
  return start_curator(m_options.kind, job, session);
}

Process ZookeeperLine::start_curator(const std::string& kind, const Words& job, Millis session) const
{
  Words words = m_native;
  if (kind != "mutex") {
    words.insert(words.begin() + 1, "-Dkind=" + kind);
  }
  return Process(
      joined(words, joined({m_nodes->hosts() + m_options.chroot, std::to_string(session.count()), "/k"}, job)));
}

zookeeper::Answer ZookeeperLine::ask(const zookeeper::Operation& operation) const
{
  auto answer = m_client->ask(operation, {.deadline = m_clock.now() + 10s, .stop = StopToken::never()});
  REQUIRE_MESSAGE(answer, answer.error().text);
  return *std::move(answer);
}

std::vector<std::string> ZookeeperLine::contenders() const
{
  return zookeeper::line_in(m_clients, ask(zookeeper::get_children(m_options.chroot + "/k")).children);
}

std::string ZookeeperLine::first_owner() const { return zookeeper::contender_in(m_clients, contenders().front()); }

std::string ZookeeperLine::fence_of(const std::string& contender) const
{
  return std::to_string(ask(zookeeper::exists(path(contender), false)).stat.czxid);
}

void ZookeeperLine::remove(const std::string& contender) const
{
  REQUIRE(ask(zookeeper::remove(path(contender), zookeeper::any_version)).is_ok());
}

void ZookeeperLine::put(const std::string& node) const
{
  REQUIRE(ask(zookeeper::create(path(node), {}, zookeeper::CreateMode::persistent, false)).is_ok());
}

}  // namespace rlock::test
