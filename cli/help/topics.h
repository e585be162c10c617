// SPDX-License-Identifier: Apache-2.0
// The topics of `rlock help` that are no verbs.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace rlock::cli {

struct Topic {
  std::string_view name;
  std::string_view summary;  // what the topic describes
  std::string (*help)();     // rlock help NAME
  std::string (*mdoc)();     // rlock help --mdoc NAME: a part of a manual page
};

std::span<const Topic> all_topics();
const Topic* find_topic(std::string_view name);  // nullptr: there is none

// The forms of a server's URL.
struct UrlForm {
  std::string_view url;
  std::string_view meaning;
};
std::span<const UrlForm> url_forms();

}  // namespace rlock::cli
