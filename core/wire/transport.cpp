// SPDX-License-Identifier: Apache-2.0
#include "wire/transport.h"

#include <string>
#include <vector>

namespace rlock {

Result<Reply> run_script(Transport& transport, const Script& script,
                         std::span<const std::string_view> keys,
                         std::span<const std::string_view> args, const Limit& limit)
{
  const std::string key_count = std::to_string(keys.size());
  std::vector<std::string_view> argv{"EVALSHA", script.sha1, key_count};
  argv.insert(argv.end(), keys.begin(), keys.end());
  argv.insert(argv.end(), args.begin(), args.end());
  const std::string_view route_key = keys.empty() ? std::string_view{} : keys.front();

  auto reply = transport.call(route_key, argv, limit);
  if (reply && reply->is_error()) {
    const std::string source = script.source();
    argv[0] = "EVAL";
    argv[1] = source;
    reply = transport.call(route_key, argv, limit);
  }
  if (reply && reply->is_error()) {
    return Error{Fault::internal, "the server does not know the script " +
                                      std::string(script.name) + ", which it has just been sent"};
  }
  return reply;
}

}  // namespace rlock
