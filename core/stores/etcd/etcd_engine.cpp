// SPDX-License-Identifier: Apache-2.0
// All that the URLs of an etcd cluster mean.
#include "stores/engine.h"

#include "stores/etcd/etcd_backend.h"

namespace rlock::etcd {
namespace {

Result<std::string> rights(const Endpoint& endpoint, std::string_view user, std::span<const std::string> globs)
{
  return rights_lines(connection_spec(endpoint), user, globs);
}

constexpr std::array url_forms{UrlForm{"etcd://[user[:password]@]host[:port][,host...][/prefix]",
                                       "an etcd cluster, by some of its members; etcds:// with TLS"}};
constexpr std::array<std::string_view, 2> rights_examples{
    "rlock acl -S etcd://e1,e2,e3/app --user deploy  # lines for etcdctl",
    "rlock acl -S etcd://e1/app -k stock  # and those that --format etcd needs"};

}  // namespace

extern constinit const Engine engine{
    .name = "etcd",
    .parse = parse_etcd_url,
    .open = open_records<connection_spec, open_backend>,
    .title = "etcd",
    .page = "etcd",
    .url_forms = url_forms,
    .refuses_sync = "every write is on a majority of the members of etcd already (leave out --sync)",
    .refuses_quorum =
        "an etcd cluster is no part of a quorum: every write is on a majority already (give it alone; its members "
        "stand in one URL, etcd://a,b,c/prefix)",
    .refuses_tls_files = "etcd:// is without TLS (try etcds://)",
    .password_variable = "ETCDCTL_PASSWORD",
    .beside = {NativeFormat::etcd},
    .beside_help = "etcd: beside etcdctl lock and the lock service of etcd",
    .rights = rights,
    .rights_have_globs = true,
    .rights_examples = rights_examples,
};

}  // namespace rlock::etcd
