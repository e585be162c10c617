// SPDX-License-Identifier: Apache-2.0
#include "support/place.h"

#include "support/certificates.h"
#include "support/redis_fixture.h"
#include "support/sentinel_group.h"
#include "support/shop.h"
#include "support/skip.h"
#include "support/wait_until.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

namespace rlock::test {
namespace {

struct Named {
  const char* name;
  LockCandidate place;
};
constexpr Named names[] = {{"unix", LockCandidate::unix_socket},  {"tcp", LockCandidate::tcp},
                           {"tls", LockCandidate::tls},           {"acl", LockCandidate::acl},
                           {"sentinel", LockCandidate::sentinel}, {"cluster", LockCandidate::cluster},
                           {"quorum3", LockCandidate::quorum3},   {"quorum5", LockCandidate::quorum5}};

const char* wanted()
{
  const char* name = std::getenv("RLOCK_TEST_ON");
  return name == nullptr || *name == '\0' ? "unix" : name;
}

// One for all servers of a test case, whose files go with it.
std::optional<Authority> authority_of_case;

bool has_authority() { return authority_of_case && std::filesystem::exists(authority_of_case->file()); }

const Authority& authority()
{
  if (!has_authority()) {
    authority_of_case.reset();  // its own processes have none in their environment
    authority_of_case.emplace();
  }
  return *authority_of_case;
}

std::vector<std::string> users;  // the URLs, with the password, of the servers that stand

const std::vector<std::string>& user_line()
{
  static const std::vector<std::string> words = [] {
    std::vector<std::string> line = acl_line("k");
    line.erase(line.begin(), line.begin() + 2);  // ACL SETUSER
    line.insert(line.begin(), "--user");
    // The stories have names of all kinds, with tags and odd bytes: of the keys the tests of `acl` itself see to it.
    std::erase_if(line, [](const std::string& word) { return word[0] == '~' || word[0] == '&'; });
    line.insert(line.end(), {"~*", "&*", ">secret"});
    return line;
  }();
  return words;
}

class ByTcp final : public Way {
 public:
  explicit ByTcp(const RedisServer& server) : m_url(server.tcp_url()) {}
  [[nodiscard]] std::string url() const override { return m_url; }

 private:
  const std::string m_url;
};

class AsUser final : public Way {
 public:
  explicit AsUser(const RedisServer& server) : m_path(server.socket_path())
  {
    users.push_back("unix://shop:secret@" + m_path);
  }
  ~AsUser() override { std::erase(users, "unix://shop:secret@" + m_path); }
  AsUser(const AsUser&) = delete;
  AsUser& operator=(const AsUser&) = delete;
  [[nodiscard]] std::string url() const override { return "unix://" + m_path; }

 private:
  const std::string m_path;
};

class BySentinel final : public Way {
 public:
  explicit BySentinel(const RedisServer& server)
      : m_sentinel({.master_port = server.port(), .quorum = 9, .down_after = std::chrono::hours(1), .password = ""})
  {
  }
  [[nodiscard]] std::string url() const override { return "redis+sentinel://" + m_sentinel.where() + "/mymaster"; }

 private:
  SentinelProcess m_sentinel;
};

// With a node alone there is nobody to agree with, but it waits for two seconds before it serves.
class AsCluster final : public Way {
 public:
  explicit AsCluster(const RedisServer& server) : m_url("redis+cluster://127.0.0.1:" + std::to_string(server.port()))
  {
    server.command({"CLUSTER", "ADDSLOTSRANGE", "0", "16383"});
    started(server);
  }
  [[nodiscard]] std::string url() const override { return m_url; }
  void started(const RedisServer& server) override
  {
    const auto serves = [&] {
      return as_text(server.command({"CLUSTER", "INFO"})).find("cluster_state:ok") != std::string::npos;
    };
    wait_until(serves, "the cluster serves all slots");
  }
  // Its channels have slots as keys do: who listens is asked for there.
  [[nodiscard]] std::vector<std::string> as_said_there(std::vector<std::string> words) const override
  {
    if (words.front() == "PUBSUB") {
      words[1].insert(0, "SHARD");
    }
    return words;
  }

 private:
  const std::string m_url;
};

class OneOfSeveral final : public Way {
 public:
  OneOfSeveral(const RedisServer& server, RedisOptions options, std::size_t count)
      : m_url("unix://" + server.socket_path().string())
  {
    options.alone = true;
    while (m_others.size() + 1 < count) {
      m_url += " " + m_others.emplace_back(options).url();
    }
  }
  [[nodiscard]] std::string url() const override { return m_url; }
  void each_other(const std::function<void(RedisServer&)>& act) override
  {
    std::for_each(m_others.begin(), m_others.end(), act);
  }

 private:
  std::string m_url;
  std::deque<RedisServer> m_others;
};

}  // namespace

LockCandidate place()
{
  const std::string name = wanted();
  const auto* const known =
      std::find_if(std::begin(names), std::end(names), [&](const Named& one) { return one.name == name; });
  REQUIRE_MESSAGE(known != std::end(names),
                  "RLOCK_TEST_ON is one of unix, tcp, tls, acl, sentinel, cluster, quorum3, quorum5, not " << name);
  return known->place;
}

bool on_a_quorum() { return place() == LockCandidate::quorum3 || place() == LockCandidate::quorum5; }

void not_on(std::initializer_list<LockCandidate> places, const std::string& why)
{
  if (std::find(places.begin(), places.end(), place()) != places.end()) {
    skip(std::string("on ") + wanted() + ", " + why);
  }
}

void not_on_a_quorum(const std::string& why) { not_on({LockCandidate::quorum3, LockCandidate::quorum5}, why); }

std::map<std::string, std::string> environment_of_place()
{
  if (has_authority()) {
    return {{"RLOCK_CACERT", authority_of_case->file()}};
  }
  std::string urls;
  for (const std::string& url : users) {
    urls += (urls.empty() ? "" : " ") + url;
  }
  return urls.empty() ? std::map<std::string, std::string>{} : std::map<std::string, std::string>{{"REDIS_URL", urls}};
}

bool is_for_the_place(const RedisOptions& options)
{
  return place() != LockCandidate::unix_socket && !options.alone && !options.tcp && !options.cluster && !options.tls &&
         options.password.empty();
}

RedisOptions as_the_place_needs(RedisOptions options)
{
  switch (place()) {
    case LockCandidate::tls: options.tls = authority().sign("IP:127.0.0.1"); [[fallthrough]];
    case LockCandidate::tcp:
    case LockCandidate::sentinel: options.tcp = true; break;
    case LockCandidate::cluster: options.tcp = options.cluster = true; break;
    case LockCandidate::acl:
      options.args.insert(options.args.end(), user_line().begin(), user_line().end());
      options.password = "operator";
      break;
    case LockCandidate::unix_socket:
    case LockCandidate::quorum3:
    case LockCandidate::quorum5: break;
  }
  return options;
}

std::shared_ptr<Way> way_to(const RedisServer& server, const RedisOptions& options)
{
  switch (place()) {
    case LockCandidate::tcp:
    case LockCandidate::tls: return std::make_shared<ByTcp>(server);
    case LockCandidate::acl: return std::make_shared<AsUser>(server);
    case LockCandidate::sentinel: return std::make_shared<BySentinel>(server);
    case LockCandidate::cluster: return std::make_shared<AsCluster>(server);
    case LockCandidate::quorum3: return std::make_shared<OneOfSeveral>(server, options, 3);
    case LockCandidate::quorum5: return std::make_shared<OneOfSeveral>(server, options, 5);
    case LockCandidate::unix_socket: break;
  }
  return nullptr;
}

}  // namespace rlock::test
