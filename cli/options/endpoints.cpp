// SPDX-License-Identifier: Apache-2.0
#include "cli/options/endpoints.h"

#include <algorithm>
#include <iterator>

namespace rlock::cli {
namespace {

// Where URLs come from, and the kind of error that a bad one is.
struct Source {
  std::string name;
  ErrorCode code;
  std::string_view setting = {};  // of the file
  [[nodiscard]] Error error(const std::string& text) const
  {
    return {code, name + (setting.empty() ? ": " : ": " + std::string(setting) + ": ") + text};
  }
};

// The servers of a quorum are independent masters with one vote each.
Result<Done> check_quorum(const std::vector<Endpoint>& endpoints, const Source& source)
{
  for (auto one = endpoints.begin(); one != endpoints.end() && endpoints.size() > 1; ++one) {
    if (one->is_private()) {
      return source.error(
          "local: is one server for one host and no part of a quorum (give redis:// or "
          "unix:// URLs)");
    }
    if (one->is_cluster()) {
      return source.error(
          "a cluster is no part of a quorum (give all its nodes in one URL, "
          "redis+cluster://host:7000,host:7001)");
    }
    const auto same = std::find_if(std::next(one), endpoints.end(),
                                   [&](const Endpoint& other) { return one->is_same_server(other); });
    if (same != endpoints.end()) {
      return source.error(one->shown() + " and " + same->shown() + " are the same server, which cannot vote twice");
    }
  }
  return Done{};
}

Result<NamedEndpoints> endpoints_of(const std::vector<std::string>& urls, const Source& source)
{
  std::vector<Endpoint> endpoints;
  for (const std::string& url : urls) {
    auto endpoint = parse_server(url);
    if (!endpoint) {
      return source.error(endpoint.error().text);
    }
    endpoints.push_back(*std::move(endpoint));
  }
  const auto checked = check_quorum(endpoints, source);
  return checked ? Result(NamedEndpoints{.endpoints = std::move(endpoints), .named_by = source.name})
                 : Result<NamedEndpoints>(checked.error());
}

// A blank in a user or password ends the URL before it.
bool has_cut_credentials(const std::vector<std::string>& urls)
{
  return std::any_of(urls.begin(), urls.end(),
                     [&](const std::string& url) { return &url != &urls.front() && url.find('@') < url.find("://"); });
}

Result<NamedEndpoints> endpoints_in(const std::vector<std::string>& urls, const char* variable)
{
  const Source source{variable, ErrorCode::config};
  if (has_cut_credentials(urls)) {
    return source.error("a blank separates servers (write a blank in a user or password as %20)");
  }
  return endpoints_of(urls, source);
}

}  // namespace

std::vector<std::string> urls_in(std::string_view text)
{
  constexpr std::string_view spaces = " \t\n\v\f\r";
  std::vector<std::string> urls;
  // No stream: the first one of a process makes a locale, which takes a tenth of the instructions of a start.
  for (auto begin = text.find_first_not_of(spaces); begin != std::string_view::npos;) {
    const auto end = std::min(text.find_first_of(spaces, begin), text.size());
    urls.emplace_back(text.substr(begin, end - begin));
    begin = text.find_first_not_of(spaces, end);
  }
  return urls;
}

Result<NamedEndpoints> resolve_endpoints(const std::vector<std::string>& urls, const Environment& environment)
{
  if (!urls.empty()) {
    return endpoints_of(urls, {"--server", ErrorCode::usage});
  }
  if (const auto own = urls_in(environment.value("RLOCK_SERVER")); !own.empty()) {
    return endpoints_in(own, "RLOCK_SERVER");
  }
  if (const Setting* configured = environment.setting("--server")) {
    return endpoints_of(configured->values, {configured->where, ErrorCode::config, "server"});
  }
  if (const auto of_application = urls_in(environment.value("REDIS_URL")); !of_application.empty()) {
    return endpoints_in(of_application, "REDIS_URL");
  }
  return endpoints_of({std::string(default_url)}, {"default", ErrorCode::internal});
}

}  // namespace rlock::cli
