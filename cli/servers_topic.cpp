// SPDX-License-Identifier: Apache-2.0
#include "cli/servers_topic.h"

#include <array>

namespace rlock::cli {
namespace {

constexpr std::array output_formats{
    ServerForm{"redis://[user[:password]@]host[:port][/db]",
               "one server; host and host:port mean the same without redis://"},
    ServerForm{"rediss://...", "one server, by TLS; the certificate must name that host"},
    ServerForm{"unix://[user[:password]@]/path[?db=N]", "one server, by its socket"},
    ServerForm{"redis+cluster://host:port,host:port", "a cluster, by some of its nodes; rediss+cluster:// with TLS"},
    ServerForm{"redis+sentinel://host:port,host:port/master[/db]",
               "the master of that name, as its sentinels know it; rediss+sentinel:// with TLS"},
    ServerForm{"local:", "a private server that rlock starts for all processes of this user on this host"},
};

}  // namespace

std::span<const ServerForm> server_forms() { return output_formats; }

}  // namespace rlock::cli
