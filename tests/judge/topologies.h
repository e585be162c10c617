// SPDX-License-Identifier: Apache-2.0
// The makers of the topologies, for the table in servers.cpp.
#pragma once

#include "judge/servers.h"

#include <cstddef>
#include <memory>
#include <string_view>

namespace rlock::judge {

std::unique_ptr<Servers> make_independent_servers(std::size_t count);  // one, or a quorum
std::unique_ptr<Servers> make_sentinel_servers(bool sync);
std::unique_ptr<Servers> make_cluster_servers();
std::unique_ptr<Servers> make_database_servers(std::string_view name);  // of test::databases, but no cluster
std::unique_ptr<Servers> make_etcd_servers(std::size_t members);        // one, or a cluster
std::unique_ptr<Servers> make_zookeeper_servers(std::size_t members);

}  // namespace rlock::judge
