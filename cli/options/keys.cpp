// SPDX-License-Identifier: Apache-2.0
#include "cli/options/keys.h"

namespace rlock::cli {
namespace {

constexpr NumberRule shards_rule{"--shards", 1, 1024, "5"};

}  // namespace

void add_prefix_option(Options& options, RawKeys& raw)
{
  options.text("--prefix", raw.prefix, "TEXT", "text that rlock puts before every key");
}

void add_key_options(Options& options, RawKeys& raw)
{
  options.texts("-k,--key", raw.keys, "KEY", "name of the lock, which is the Redis key");
  add_prefix_option(options, raw);
}

void add_key_list_options(Options& options, RawKeys& raw)
{
  options.texts("-k,--key", raw.keys, "KEY",
                "name of the lock, which is the Redis key; given several times: rlock takes all of the locks or none");
  add_prefix_option(options, raw);
}

Result<std::vector<LockName>> resolve_keys(const RawKeys& raw, std::span<const std::string> operands)
{
  std::vector<std::string> keys = raw.keys;
  keys.insert(keys.end(), operands.begin(), operands.end());
  if (keys.empty()) {
    return usage("no key: name the lock with -k KEY (try -k stock)");
  }

  std::vector<LockName> names;
  for (const std::string& key : keys) {
    if (key.empty()) {
      return usage("--key: the key is empty (try -k stock)");
    }
    Result<LockName> name = LockName::parse(raw.prefix.value_or("") + key);
    if (!name) {
      return name.error();
    }
    names.push_back(*std::move(name));
  }
  return names;
}

Result<LockName> resolve_key(const RawKeys& raw, std::span<const std::string> operands)
{
  Result<std::vector<LockName>> names = resolve_keys(raw, operands);
  if (!names) {
    return names.error();
  }
  if (names->size() > 1) {
    return usage(std::to_string(names->size()) + " keys, but this verb takes one key (call it once for each key)");
  }
  return names->front();
}

Result<std::vector<LockName>> resolve_keys_to_take(const RawKeys& raw)
{
  Result<std::vector<LockName>> names = resolve_keys(raw, {});
  for (std::size_t i = 0; names && i < names->size(); ++i) {
    if (const Result<Done> checked = check_can_be_taken((*names)[i]); !checked) {
      return checked.error();
    }
  }
  return names;
}

Result<LockName> resolve_key_to_take(const RawKeys& raw, std::span<const std::string> operands)
{
  Result<LockName> name = resolve_key(raw, operands);
  const Result<Done> checked = name ? check_can_be_taken(*name) : Result(Done{});
  return checked ? std::move(name) : Result<LockName>(checked.error());
}

void add_shards_option(Options& options, Text& raw, const char* number)
{
  options.text("--shards", raw, "N", {"take any free lock of KEY:0 to KEY:N-1", number});
}

Result<std::vector<LockName>> resolve_shards(const Text& raw, const LockName& key)
{
  std::vector<LockName> shards;
  if (!raw) {
    return shards;
  }
  const Result<int> count = resolve_number(*raw, shards_rule);
  if (!count) {
    return count.error();
  }
  for (int i = 0; i < *count; ++i) {
    const Result<LockName> name = LockName::parse(key.text() + ":" + std::to_string(i));
    const Result<Done> checked = name ? check_can_be_taken(*name) : Result<Done>(name.error());
    if (!checked) {
      return checked.error();
    }
    shards.push_back(*name);
  }
  return shards;
}

Error several_patterns(std::string_view verb)
{
  return usage("more than one pattern; quote the pattern if the shell expands it (try rlock " + std::string(verb) +
               " 'billing:*')");
}

std::string resolve_pattern(const RawKeys& raw, std::string_view pattern)
{
  std::string glob;
  for (const char c : raw.prefix.value_or("")) {
    if (std::string_view("*?[]^\\").find(c) != std::string_view::npos) {
      glob += '\\';
    }
    glob += c;
  }
  return glob + std::string(pattern);
}

}  // namespace rlock::cli
