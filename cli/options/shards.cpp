// SPDX-License-Identifier: Apache-2.0
#include "cli/options/shards.h"

#include "base/text.h"
#include "lock/names.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <memory>
#include <optional>
#include <set>
#include <string_view>
#include <system_error>

namespace rlock::cli {
namespace {

constexpr std::size_t largest_list = 1 << 20;  // bytes of a file; a device may have no end
constexpr std::string_view try_names = " (try --shards pixel-1,pixel-2)";
constexpr std::string_view try_lines = " (one name a line; # begins a comment)";

using NamesFile = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

// "-1" is a number, too: an error says which numbers there are.
bool is_number(std::string_view value)
{
  const std::string_view digits = value.starts_with('-') ? value.substr(1) : value;
  return !digits.empty() && std::ranges::all_of(digits, is_digit);
}

// A "#" within a word belongs to the name.
std::string_view without_comment(std::string_view line)
{
  for (std::size_t at = line.find('#'); at != std::string_view::npos; at = line.find('#', at + 1)) {
    if (at == 0 || line[at - 1] == ' ' || line[at - 1] == '\t') {
      return line.substr(0, at);
    }
  }
  return line;
}

// What is wrong with the names; nullopt: nothing.
std::optional<std::string> flaw_of(const std::vector<std::string>& names)
{
  if (names.empty()) {
    return "it has no name";
  }
  if (names.size() > most_shards) {
    return std::to_string(names.size()) + " names, at most " + std::to_string(most_shards);
  }
  std::set<std::string_view> seen;
  for (const std::string& name : names) {
    if (name.empty()) {
      return "a name is empty";
    }
    if (name.find(',') != std::string::npos) {
      return "the name '" + shown_word(name) + "' has a comma in it";
    }
    if (!seen.insert(name).second) {
      return "the name '" + shown_word(name) + "' is given twice";
    }
  }
  return std::nullopt;
}

Result<std::vector<std::string>> names_in_word(const Given& given)
{
  std::vector<std::string> names;
  for (const std::string_view part : split_ended(given.value, ',')) {
    names.emplace_back(trimmed(part));
  }
  const auto flaw = flaw_of(names);
  return flaw ? usage(given.option->name() + ": " + *flaw + std::string(try_names)) : Result(std::move(names));
}

Result<std::string> text_of_file(const std::string& path, const std::string& option)
{
  const auto unreadable = [&](const std::string& why, ErrorCode code = ErrorCode::config) {
    return Error{code, option + ": cannot read names from " + printable(path) + ": " + why};
  };
  const auto unreadable_by = [&](int error) {
    return unreadable(std::generic_category().message(error), is_shortage(error) ? ErrorCode::os : ErrorCode::config);
  };
  const NamesFile file(std::fopen(path.c_str(), "re"), std::fclose);
  if (!file) {
    return unreadable_by(errno);
  }
  std::string text(largest_list + 1, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), file.get()));
  if (std::ferror(file.get()) != 0) {
    return unreadable_by(errno);
  }
  return text.size() <= largest_list ? Result(std::move(text)) : unreadable("it is too large for a list of names");
}

Result<std::vector<std::string>> names_in_file(const std::string& path, const std::string& option)
{
  ASSIGN_OR_RETURN(const auto text, text_of_file(path, option));
  std::vector<std::string> names;
  for (const std::string_view line : split_ended(text, '\n')) {
    if (const std::string_view name = trimmed(without_comment(line)); !name.empty()) {
      names.emplace_back(name);
    }
  }
  const auto flaw = flaw_of(names);
  return flaw ? Error{ErrorCode::config, option + ": " + printable(path) + ": " + *flaw + std::string(try_lines)}
              : Result(std::move(names));
}

}  // namespace

Result<Done> read_shards(const Given& given, RawShards& shards)
{
  shards = {};
  if (is_number(given.value)) {
    return read_value(given, shards.count);
  }
  return assign(
      given.value.starts_with('@') ? names_in_file(given.value.substr(1), given.option->name()) : names_in_word(given),
      shards.names);
}

Result<Done> resolve_shards(const RawShards& shards, RunRequest& request)
{
  std::vector<std::string> names = shards.names;
  for (int i = 0; i < shards.count; ++i) {
    names.push_back(std::to_string(i));
  }
  if (!names.empty() && request.names.size() > 1) {
    return usage("--shards is for one key: its locks are KEY:0, KEY:1 and so on (try -k stock --shards 5)");
  }
  request.shard_names = shards.names;
  for (const std::string& each : names) {
    ASSIGN_OR_RETURN(auto name, LockName::parse(request.name().text() + ":" + each));
    RETURN_IF_ERROR(check_can_be_taken(name));
    request.shards.push_back(std::move(name));
  }
  return Done{};
}

}  // namespace rlock::cli
