// SPDX-License-Identifier: Apache-2.0
#include "server/transport.h"

namespace rlock {
namespace {

std::vector<std::string_view> views(std::span<const std::string> words) { return {words.begin(), words.end()}; }

Request by_sha(const ScriptCall& call)
{
  std::vector<std::string> words{"EVALSHA", std::string(call.script.sha1), std::to_string(call.keys.size())};
  words.insert(words.end(), call.keys.begin(), call.keys.end());
  words.insert(words.end(), call.args.begin(), call.args.end());
  return {.route_key = call.keys.empty() ? "" : call.keys.front(), .words = std::move(words)};
}

Result<Reply> run_routed(Transport& transport, std::string_view route_key, const Script& script,
                         std::span<const std::string_view> keys, std::span<const std::string_view> args,
                         const CallLimits& limit)
{
  const std::string key_count = std::to_string(keys.size());
  std::vector<std::string_view> argv{"EVALSHA", script.sha1, key_count};
  argv.insert(argv.end(), keys.begin(), keys.end());
  argv.insert(argv.end(), args.begin(), args.end());

  auto reply = transport.call(route_key, argv, limit);
  if (reply && reply->is_error()) {
    const std::string source = script.source();
    argv[0] = "EVAL";
    argv[1] = source;
    reply = transport.call(route_key, argv, limit);
  }
  if (reply && reply->is_error()) {
    return Error{ErrorCode::internal,
                 "the server does not know the script " + std::string(script.name) + " that was just sent to it"};
  }
  return reply;
}

}  // namespace

std::vector<Result<Reply>> Transport::call_each(std::span<const Request> requests, const CallLimits& limit)
{
  std::vector<Result<Reply>> answers;
  for (const Request& request : requests) {
    answers.push_back(call(request.route_key, views(request.words), limit));
  }
  return answers;
}

Result<std::vector<std::string>> Transport::routes(const CallLimits&) { return std::vector<std::string>{""}; }

Result<Reply> run_script(Transport& transport, const Script& script, std::span<const std::string_view> keys,
                         std::span<const std::string_view> args, const CallLimits& limit)
{
  return run_routed(transport, keys.empty() ? std::string_view{} : keys.front(), script, keys, args, limit);
}

Result<Reply> run_script_at(Transport& transport, std::string_view route_key, const Script& script,
                            std::span<const std::string_view> args, const CallLimits& limit)
{
  return run_routed(transport, route_key, script, {}, args, limit);
}

std::vector<Result<Reply>> run_scripts(Transport& transport, std::span<const ScriptCall> calls, const CallLimits& limit)
{
  std::vector<Request> requests;
  for (const ScriptCall& call : calls) {
    requests.push_back(by_sha(call));
  }
  std::vector<Result<Reply>> answers = transport.call_each(requests, limit);
  for (std::size_t i = 0; i < calls.size(); ++i) {
    if (answers[i] && answers[i]->is_error()) {
      answers[i] = run_script(transport, calls[i].script, views(calls[i].keys), views(calls[i].args), limit);
    }
  }
  return answers;
}

}  // namespace rlock
