// SPDX-License-Identifier: Apache-2.0
#include "support/zookeeper_line.h"

#include <fstream>
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
Words native_client(record::LineFormat format)
{
  if (format == NativeFormat::kazoo) {
    const std::string python = python_with_kazoo();
    if (python.empty()) {
      skip("no kazoo (install python3-kazoo)");
    }
    return {python, "-B", (interop / "kazoo_lock.py").string()};
  }
  const fs::path curator = libraries / "curator";
  if (!fs::exists(curator / "classes")) {
    skip("no Curator (sh tests/interop/run.sh --download)");
  }
  return {"java",
          "-Xmx64m",
          "-XX:+UseSerialGC",
          "-XX:TieredStopAtLevel=1",
          "-cp",
          (curator / "*").string() + ":" + (curator / "classes").string(),
          "CuratorLock"};
}

}  // namespace

ZookeeperLine::ZookeeperLine(record::LineFormat format, std::string chroot, int nodes)
    : m_chroot(std::move(chroot)), m_format(format), m_native(native_client(format))
{
  m_nodes.emplace(ZookeeperOptions{.nodes = nodes});
  m_client = m_nodes->client(m_nodes->url(), 60s, m_clock);
}

void ZookeeperLine::kill_leader()
{
  m_nodes->kill(m_nodes->leader());
  wait_until([&] { return m_nodes->leader() != 0; }, "another member leads");
}

Words ZookeeperLine::with_server(Words args) const
{
  args.insert(args.begin() + 1, {"-S", m_nodes->url(m_chroot)});
  return args;
}

Words ZookeeperLine::run_words(const Words& options, const Words& job) const
{
  return with_job(joined({"run", "--format", format(), "-k", "k"}, options), job);
}

Process ZookeeperLine::start_native(const Words& job, Millis session, const std::string& kind) const
{
  Words words = m_native;
  if (kind != "mutex") {
    words.insert(words.begin() + 1, "-Dkind=" + kind);
  }
  return Process(joined(words, joined({m_nodes->hosts() + m_chroot, std::to_string(session.count()), "/k"}, job)));
}

std::vector<std::string> ZookeeperLine::contenders() const
{
  const auto answer = m_client->ask(zookeeper::get_children(m_chroot + "/k"), soon());
  REQUIRE_MESSAGE(answer, answer.error().text);
  return zookeeper::line_in(m_format, answer->children);
}

void ZookeeperLine::await_contenders(std::size_t number) const
{
  wait_until([&] { return contenders().size() == number; }, std::to_string(number) + " contenders are in the line",
             30s);
}

std::string ZookeeperLine::first_owner() const { return zookeeper::contender_in(m_format, contenders().front()); }

void ZookeeperLine::remove(const std::string& node) const
{
  const auto answer = m_client->ask(zookeeper::remove(m_chroot + "/k/" + node, zookeeper::any_version), soon());
  REQUIRE_MESSAGE(answer, answer.error().text);
  REQUIRE(answer->is_ok());
}

void ZookeeperLine::put(const std::string& node) const
{
  const auto answer =
      m_client->ask(zookeeper::create(m_chroot + "/k/" + node, {}, zookeeper::CreateMode::persistent, false), soon());
  REQUIRE_MESSAGE(answer, answer.error().text);
  REQUIRE(answer->is_ok());
}

std::int64_t ZookeeperLine::czxid(const std::string& node) const
{
  const auto answer = m_client->ask(zookeeper::exists(m_chroot + "/k/" + node, false), soon());
  REQUIRE_MESSAGE(answer, answer.error().text);
  return answer->stat.czxid;
}

CallLimits ZookeeperLine::soon() const { return {.deadline = m_clock.now() + 10s, .stop = StopToken::never()}; }

std::string until_exists(const fs::path& file) { return "until [ -e " + file.string() + " ]; do sleep 0.02; done"; }

Words shell(const std::string& line) { return {"sh", "-c", line}; }

std::string noting(const std::string& word) { return "echo " + word + " >> " + (home_dir() / "order").string(); }

std::string order() { return text_of(home_dir() / "order"); }

void create(const fs::path& file) { std::ofstream(file).flush(); }

}  // namespace rlock::test
