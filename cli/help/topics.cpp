// SPDX-License-Identifier: Apache-2.0
#include "cli/help/topics.h"

#include "cli/help/help.h"
#include "cli/help/manual.h"

#include <algorithm>
#include <array>

namespace rlock::cli {
namespace {

constexpr std::array topics{
    Topic{"servers", "the server URLs and their options", help_of_servers, mdoc_of_servers},
    Topic{"json", "the JSON objects that rlock prints", help_of_json, mdoc_of_json},
};

constexpr std::array forms{
    UrlForm{"redis://[user[:password]@]host[:port][/db]",
            "one server; host and host:port mean the same without redis://"},
    UrlForm{"rediss://...", "one server with TLS; its certificate must name that host"},
    UrlForm{"unix://[user[:password]@]/path[?db=N]", "one server, by its unix socket"},
    UrlForm{"redis+cluster://host:port,host:port", "a cluster, by some of its nodes; rediss+cluster:// with TLS"},
    UrlForm{"redis+sentinel://host:port,host:port/master[/db]",
            "the master of that name, which the sentinels know; rediss+sentinel:// with TLS"},
    UrlForm{"local:", "a private server that rlock starts for all processes of this user on this host"},
};

}  // namespace

std::span<const Topic> all_topics() { return topics; }

const Topic* find_topic(std::string_view name)
{
  const auto* const found =
      std::find_if(topics.begin(), topics.end(), [&](const Topic& topic) { return topic.name == name; });
  return found == topics.end() ? nullptr : found;
}

std::span<const UrlForm> url_forms() { return forms; }

}  // namespace rlock::cli
