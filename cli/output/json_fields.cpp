// SPDX-License-Identifier: Apache-2.0
#include "cli/output/json_fields.h"

#include "base/text.h"
#include "cli/output/json_row.h"

#include <algorithm>
#include <iterator>

namespace rlock::cli {

// nlohmann::json prints unprintable characters above U+001F as they are; outside of strings there are none.
std::string one_line(const Json& json)
{
  const std::string dumped = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  std::string line;
  line.reserve(dumped.size() + 1);
  for (std::string_view rest = dumped; !rest.empty();) {
    const std::string_view character = rest.substr(0, std::max<std::size_t>(utf8_length(rest), 1));
    line += begins_with_unprintable(character) ? json_escape(character) : std::string(character);
    rest.remove_prefix(character.size());
  }
  return line + "\n";
}

Json or_null(std::string_view text) { return text.empty() ? Json() : Json(text); }
Json or_null(std::int64_t number) { return number == 0 ? Json() : Json(number); }
Json or_null(std::optional<Millis> time) { return time ? Json(time->count()) : Json(); }

const std::vector<JsonObject>& json_objects()
{
  static const std::vector<JsonObject> objects = [] {
    std::vector<JsonObject> all = lock_objects();
    std::vector<JsonObject> reports = report_objects();
    std::move(reports.begin(), reports.end(), std::back_inserter(all));
    return all;
  }();
  return objects;
}

}  // namespace rlock::cli
