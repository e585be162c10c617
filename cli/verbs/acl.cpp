// SPDX-License-Identifier: Apache-2.0
// rlock acl: the ACL rules that an administrator must set.
#include "redis/acl.h"
#include "cli/options/lock.h"
#include "cli/options/output.h"
#include "cli/options/server.h"
#include "cli/output/json.h"
#include "cli/output/output.h"
#include "cli/verbs/dispatch.h"

#include <algorithm>

namespace rlock::cli {
namespace {

struct RawAcl {
  RawKeys keys;
  std::vector<std::string> urls;
  std::string user = "rlock";
  bool cluster = false;
  bool json = false;
};

std::vector<std::string_view> examples_of_stores()
{
  std::vector<std::string_view> all;
  for (const Engine* const engine : built_engines()) {
    all.insert(all.end(), engine->rights_examples.begin(), engine->rights_examples.end());
  }
  return all;
}

// As one word of redis-cli and redis.conf, which read the escapes of printable() in double quotes.
std::string quoted_word(std::string_view word)
{
  if (word.find_first_of("\"'") == std::string_view::npos && without_controls(word) == word) {
    return std::string(word);
  }
  std::string text = "\"";
  for (const char c : printable(word)) {
    text += c == '"' ? std::string{'\\', c} : std::string(1, c);
  }
  return text + "\"";
}

std::string rules(char kind, const std::vector<std::string>& names)
{
  std::string text;
  for (const std::string& name : names) {
    text += " " + quoted_word(kind + name);
  }
  return text;
}

// Sets no password: so the command may be repeated for a user that has one, and a new user cannot log in without one.
std::string line_for(const std::string& user, const AclRules& rights)
{
  return "ACL SETUSER " + quoted_word(user) + " on resetkeys resetchannels -@all" + rules('~', rights.keys) +
         rules('&', rights.channels) + rules('+', rights.commands);
}

Result<Done> read_user(const Given& given, RawAcl& raw)
{
  const bool blank = std::ranges::any_of(given.value, [](unsigned char c) { return c <= ' ' || c == 0x7f; });
  if (given.value.empty() || blank) {
    return usage("--user: '" + printable(given.value) + "' is no user name (try --user rlock)");
  }
  raw.user = given.value;
  return Done{};
}

std::vector<std::string> resolve_globs(const RawAcl& raw, const Call& call)
{
  std::vector<std::string> globs;
  for (const auto& list : {raw.keys.keys, call.operands}) {
    for (const std::string& glob : list) {
      globs.push_back(resolve_pattern(raw.keys, glob));
    }
  }
  return globs;
}

Result<RunEnd> print_rights(const RawAcl& raw, const Call& call, const Endpoint& endpoint)
{
  const Engine& engine = engine_of(endpoint);
  const std::vector<std::string> globs = resolve_globs(raw, call);
  if (raw.cluster || (!globs.empty() && !engine.rights_have_globs)) {
    return usage(std::string(raw.cluster ? "--cluster: " : "a key: ") +
                 "the rights of a database are for all its locks (leave it out)");
  }
  ASSIGN_OR_RETURN(const auto lines, engine.rights(endpoint, raw.user, globs));
  print(raw.json ? rights_json(raw.user, lines) : lines);
  return ended(ExitCode::ok);
}

// Parses the URL and asks no server.
Result<RunEnd> execute(const RawAcl& raw, const Call& call)
{
  ASSIGN_OR_RETURN(const auto named, resolve_endpoints(raw.urls, call.environment));
  const Endpoint& endpoint = named.endpoints.front();
  if (engine_of(endpoint).rights != nullptr) {
    return print_rights(raw, call, endpoint);
  }
  const std::vector<std::string> globs = resolve_globs(raw, call);
  if (globs.empty()) {
    return usage("no key: say which locks the user may take (try -k 'app:*')");
  }
  ASSIGN_OR_RETURN(auto rights, acl_rules_for(globs));
  if (raw.cluster) {
    add_cluster(rights);
  }
  const std::string line = line_for(raw.user, rights);
  print(raw.json ? acl_json(raw.user, rights, line) : line + "\n");
  return ended(ExitCode::ok);
}

constexpr OptionRow<RawKeys> globs_row =
    key_row("locks that the user may take; it asks for them by name: rlock list --overdue nightly", "GLOB");
std::string acl_server_help()
{
  std::string text = "the server, which is not asked; for all but Redis the rights are for all locks without GLOB";
  for (const Engine* const engine : built_engines()) {
    text += engine->rights_have_globs ? "; for " + std::string(engine->title) + " it adds what --format needs" : "";
  }
  return text;
}

constexpr OptionRow<RawAcl> acl_server_row{
    {.names = "-S,--server", .value = "URL|@NAME", .help = acl_server_help, .repeats = true, .has_variable = true},
    set<&RawAcl::urls>};
constexpr OptionRow<RawAcl> user_rows[] = {
    {{.names = "--user", .value = "NAME", .help = "name of the user (rlock)"}, read_user},
    {{.names = "--cluster", .help = "add the rules for a cluster of Redis 7 or later; each node has users of its own"},
     set<&RawAcl::cluster>},
};

void add_acl_options(OptionTable& options, RawAcl& raw)
{
  add_key_options(options, raw.keys, globs_row);
  options.add(user_rows, raw);
  options.add(json_lines_row, raw.json);
  options.add(acl_server_row, raw, server_group);
}

}  // namespace

const Verb acl_verb{
    .name = "acl",
    .summary = "print the rights that a user of the server needs",
    .synopsis = "[OPTION...] [-k] GLOB",
    .examples = {"rlock acl -k 'app:*' --user deploy | redis-cli", "redis-cli ACL SETUSER deploy '>PASSWORD'",
                 "rlock acl -k 'app:*' -k '{app}:*'  # a {tag} needs a pattern with it"},
    .own_exits = {{ExitCode::ok, "printed: one line for redis-cli, or the SQL or commands of another store"},
                  {ExitCode::config, "a brace in the pattern would split the lock over two cluster slots"}},
    .common_exits = printing_codes,
    .other_synopsis = "-S URL [--user NAME]",
    .more_examples = examples_of_stores,
    .add_options = bound<RawAcl, add_acl_options, execute>,
};

}  // namespace rlock::cli
