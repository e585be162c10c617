// SPDX-License-Identifier: Apache-2.0
#include "cli/output/json.h"

#include "base/text.h"
#include "cli/output/json_fields.h"

#include <algorithm>
#include <array>
#include <iterator>

namespace rlock::cli {
namespace {

// json_line of base/log.h prints these.
constexpr std::array log_fields{
    JsonField{"time", "time", "when rlock wrote the line"},
    JsonField{"level", "string", "error, notice or detail"},
    JsonField{"event", "string or null", "what the line is about, such as waiting, busy, acquired or lost"},
    JsonField{"key", "string or null", "name of the lock"},
    JsonField{"message", "string", "the line as text"},
    JsonField{"holder", "string or null", "the holder of a lock that the caller does not have"},
    JsonField{"place", "integer or null", "place of the caller in the queue"},
    JsonField{"fence", "integer or null", "fencing number of the caller's hold"},
    JsonField{"exit_code", "integer or null", "the exit code with which rlock ends after this line"},
};

JsonObject log_object()
{
  return {"log line",
          "a line on stderr, with --log-format json",
          {"run", "once", "flock", "acquire"},
          {log_fields.begin(), log_fields.end()}};
}

std::vector<JsonObject> all_objects()
{
  std::vector<JsonObject> all = lock_objects();
  std::vector<JsonObject> reports = report_objects();
  std::move(reports.begin(), reports.end(), std::back_inserter(all));
  all.push_back(log_object());
  return all;
}

}  // namespace

const std::vector<JsonObject>& json_objects()
{
  static const std::vector<JsonObject> objects = all_objects();
  return objects;
}

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

}  // namespace rlock::cli
