// SPDX-License-Identifier: Apache-2.0
#include "cli/options/keys.h"

namespace rlock::cli {
namespace {

constexpr NumberRule shards_rule{"--shards", 1, 1024, "5"};

}  // namespace

void describe_prefix(Options& options, RawKeys& typed)
{
  options.text("--prefix", typed.prefix, "TEXT", "put before every key");
}

void describe_keys(Options& options, RawKeys& typed)
{
  options.texts("-k,--key", typed.keys, "KEY", "the lock's name, which is the Redis key");
  describe_prefix(options, typed);
}

void describe_several_keys(Options& options, RawKeys& typed)
{
  options.texts("-k,--key", typed.keys, "KEY",
                "the lock's name, which is the Redis key; given several times: all of them or none");
  describe_prefix(options, typed);
}

Result<std::vector<LockName>> resolve_keys(const RawKeys& typed, std::span<const std::string> operands)
{
  std::vector<std::string> keys = typed.keys;
  keys.insert(keys.end(), operands.begin(), operands.end());
  if (keys.empty()) {
    return usage("no key: name the lock with -k KEY (try -k stock)");
  }

  std::vector<LockName> names;
  for (const std::string& key : keys) {
    if (key.empty()) {
      return usage("--key: the key is empty (try -k stock)");
    }
    Result<LockName> name = LockName::parse(typed.prefix.value_or("") + key);
    if (!name) {
      return name.error();
    }
    names.push_back(*std::move(name));
  }
  return names;
}

Result<LockName> resolve_key(const RawKeys& typed, std::span<const std::string> operands)
{
  Result<std::vector<LockName>> names = resolve_keys(typed, operands);
  if (!names) {
    return names.error();
  }
  if (names->size() > 1) {
    return usage(std::to_string(names->size()) + " keys, and this is about one: ask for each alone");
  }
  return names->front();
}

void describe_shards(Options& options, Text& typed, std::string_view how_told)
{
  const std::string help = "any free one of the locks KEY:0 to KEY:N-1; " + std::string(how_told);
  options.text("--shards", typed, "N", help.c_str());
}

Result<std::vector<LockName>> resolve_shards(const Text& typed, const LockName& key)
{
  std::vector<LockName> shards;
  if (!typed) {
    return shards;
  }
  const Result<int> count = resolve_number(*typed, shards_rule);
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

std::string resolve_pattern(const RawKeys& typed, std::string_view pattern)
{
  std::string glob;
  for (const char c : typed.prefix.value_or("")) {
    if (std::string_view("*?[]^\\").find(c) != std::string_view::npos) {
      glob += '\\';
    }
    glob += c;
  }
  return glob + std::string(pattern);
}

}  // namespace rlock::cli
