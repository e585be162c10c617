// SPDX-License-Identifier: Apache-2.0
// All that the URLs of a ZooKeeper server mean.
#include "stores/engine.h"

#include "stores/zookeeper/zookeeper_backend.h"
#include "stores/zookeeper/zookeeper_checks.h"

namespace rlock::zookeeper {
namespace {

Result<std::string> rights(const Endpoint& endpoint, std::string_view user, std::span<const std::string>)
{
  return rights_lines(connection_spec(endpoint), user);
}

constexpr std::array url_forms{UrlForm{"zookeeper://[user[:password]@]host[:port][,host...][/chroot]",
                                       "a ZooKeeper ensemble; zookeeper+tls:// with TLS"}};
constexpr std::array<std::string_view, 1> rights_examples{
    "rlock acl -S zookeeper://zk1/app --user cron >nodes  # for zkCli.sh"};

}  // namespace

extern constinit const Engine engine{
    .name = "zookeeper",
    .parse = parse_zookeeper_url,
    .open = open_records<connection_spec, open_backend>,
    .title = "ZooKeeper",
    .page = "zookeeper",
    .url_forms = url_forms,
    .refuses_sync = "every write to ZooKeeper is on a majority already (leave out --sync)",
    .refuses_quorum =
        "a ZooKeeper ensemble is no part of a quorum (give it alone; its members stand in one URL, "
        "zookeeper://a,b,c)",
    .refuses_tls_files = "the URL has no TLS (try zookeeper+tls://host:2281)",
    .beside = {NativeFormat::curator, NativeFormat::kazoo},
    .beside_help = "curator, kazoo: beside the locks of these clients in ZooKeeper, curator also with -s and -x",
    .rights = rights,
    .rights_examples = rights_examples,
};

}  // namespace rlock::zookeeper
