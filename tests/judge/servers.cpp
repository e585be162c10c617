// SPDX-License-Identifier: Apache-2.0
#include "judge/servers.h"

#include "judge/topologies.h"

#include <algorithm>
#include <array>

namespace rlock::judge {
namespace {

struct Row {
  std::string_view name;
  std::unique_ptr<Servers> (*make)();
};

constexpr std::array topologies{
    Row{"unix", [] { return make_independent_servers(1); }},
    Row{"quorum3", [] { return make_independent_servers(3); }},
    Row{"quorum5", [] { return make_independent_servers(5); }},
    Row{"sentinel", [] { return make_sentinel_servers(false); }},
    Row{"sentinel-sync", [] { return make_sentinel_servers(true); }},
    Row{"cluster", [] { return make_cluster_servers(); }},
    Row{"postgres", [] { return make_database_servers("postgres"); }},
    Row{"mariadb", [] { return make_database_servers("mariadb"); }},
    Row{"mongo", [] { return make_database_servers("mongo"); }},
    Row{"etcd", [] { return make_etcd_servers(1); }},
    Row{"etcd3", [] { return make_etcd_servers(3); }},
    Row{"zookeeper", [] { return make_zookeeper_servers(1); }},
    Row{"zookeeper3", [] { return make_zookeeper_servers(3); }},
};

}  // namespace

std::vector<std::string_view> topology_names()
{
  std::vector<std::string_view> names;
  for (const Row& row : topologies) {
    names.push_back(row.name);
  }
  return names;
}

std::unique_ptr<Servers> make_servers(std::string_view topology)
{
  const auto* const row =
      std::find_if(topologies.begin(), topologies.end(), [&](const Row& one) { return one.name == topology; });
  return row == topologies.end() ? nullptr : row->make();
}

}  // namespace rlock::judge
