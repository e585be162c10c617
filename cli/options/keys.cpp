// SPDX-License-Identifier: Apache-2.0
#include "cli/options/keys.h"

namespace rlock::cli {
namespace {

constexpr NumberRule shards_rule{"--shards", 1, 1024, "5"};

}  // namespace

void add_prefix_option(Options& options, RawKeys& raw)
{
  options.text("--prefix", raw.prefix, "TEXT", "put before every key");
}

void add_key_options(Options& options, RawKeys& raw)
{
  options.texts("-k,--key", raw.keys, "KEY", "the lock's name, which is the Redis key");
  add_prefix_option(options, raw);
}

void add_key_list_options(Options& options, RawKeys& raw)
{
  options.texts("-k,--key", raw.keys, "KEY",
                "the lock's name, which is the Redis key; given several times: all of them or none");
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
    return usage(std::to_string(names->size()) + " keys, and this is about one: ask for each alone");
  }
  return names->front();
}

void add_shards_option(Options& options, Text& raw, std::string_view how_told)
{
  const std::string help = "any free one of the locks KEY:0 to KEY:N-1; " + std::string(how_told);
  options.text("--shards", raw, "N", help.c_str());
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
    if (!name) {
      return name.error();
    }
    shards.push_back(*name);
  }
  return shards;
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
