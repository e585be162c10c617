// SPDX-License-Identifier: Apache-2.0
// rlock acl: what an administrator has to allow.
#include "cli/options/keys.h"
#include "cli/output/json.h"
#include "cli/output/output.h"
#include "cli/verbs/table.h"
#include "store/redis/acl_rules.h"

#include <algorithm>
#include <array>
#include <memory>

namespace rlock::cli {
namespace {

struct RawAcl {
  RawKeys keys;
  Text user;
  bool cluster = false;
  bool json = false;
};

constexpr std::array<std::string_view, 3> examples{
    "rlock acl -k 'app:*' --user deploy | redis-cli",
    "redis-cli ACL SETUSER deploy '>PASSWORD'",
    "rlock acl -k 'app:*' -k '{app}:*'  # a {tag} needs a pattern with it",
};

constexpr std::array exits{
    ExitLine{"0", "the line is printed"},
    usage_exit,
    output_exit,
    ExitLine{"78", "a brace in the pattern would split the lock over two cluster slots"},
};

// As redis-cli and redis.conf take a word apart.
std::string as_word(std::string_view word)
{
  if (word.find_first_of("\"'") == std::string_view::npos) {
    return std::string(word);
  }
  std::string text = "\"";
  for (const char c : word) {
    text += c == '"' || c == '\\' ? std::string{'\\', c} : std::string(1, c);
  }
  return text + "\"";
}

std::string rules(char kind, const std::vector<std::string>& names)
{
  std::string text;
  for (const std::string& name : names) {
    text += " " + as_word(kind + name);
  }
  return text;
}

// Says nothing of a password: so it can be repeated for a user that has one, and a new user cannot log in before it does.
std::string line_for(const std::string& user, const AclRules& rights)
{
  return "ACL SETUSER " + as_word(user) + " on resetkeys resetchannels -@all" + rules('~', rights.keys) +
         rules('&', rights.channels) + rules('+', rights.commands);
}

Result<std::string> resolve_user(const RawAcl& raw)
{
  const std::string user = raw.user.value_or("rlock");
  const bool blank = std::any_of(user.begin(), user.end(), [](unsigned char c) { return c <= ' ' || c == 0x7f; });
  return user.empty() || blank
             ? Result<std::string>(usage("--user: '" + printable(user) + "' is no name of a user (try --user rlock)"))
             : user;
}

Result<RunEnd> execute(const RawAcl& raw, const Call& call)
{
  std::vector<std::string> globs;
  for (const auto& list : {raw.keys.keys, call.operands}) {
    for (const std::string& glob : list) {
      globs.push_back(resolve_pattern(raw.keys, glob));
    }
  }
  if (globs.empty()) {
    return usage("no key: say which locks the user may take (try -k 'app:*')");
  }
  const Result<std::string> user = resolve_user(raw);
  if (!user) {
    return user.error();
  }
  Result<AclRules> rights = acl_rules_for(globs);
  if (!rights) {
    return rights.error();
  }
  if (raw.cluster) {
    add_cluster(*rights);
  }
  const std::string line = line_for(*user, *rights);
  print(raw.json ? acl_json(*user, *rights, line) : line + "\n");
  return ended(ExitCode::ok);
}

VerbAction add_options(Options& options)
{
  auto raw = std::make_shared<RawAcl>();
  options.texts("-k,--key", raw->keys.keys, "GLOB", "the locks that the user may take");
  add_prefix_option(options, raw->keys);
  options.text("--user", raw->user, "NAME", "who may (rlock)");
  options.flag("--cluster", raw->cluster, "for the nodes of a cluster, of Redis 7 or later: each has users of its own");
  options.flag("--json", raw->json, "one JSON object a line");
  return [raw](const Call& call) { return execute(*raw, call); };
}

}  // namespace

const Verb acl_verb{
    .name = "acl",
    .summary = "print the ACL rules that a user of the server needs",
    .synopsis = "[OPTION...] [-k] GLOB",
    .examples = examples,
    .exits = exits,
    .operands = Operands::anywhere,
    .add_options = add_options,
};

}  // namespace rlock::cli
