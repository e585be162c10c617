// SPDX-License-Identifier: Apache-2.0
#include "cli/options/lock.h"

#include "stores/open.h"

namespace rlock::cli {
namespace {

template <typename Kind>
Result<Done> choose_kind(const Given&, RunRequest& request)
{
  request.kind = Kind{};
  return Done{};
}

Result<Done> read_permits(const Given& given, RunRequest& request)
{
  return read_value(given, request.kind.emplace<Permits>().limit);
}

Result<Done> read_format(const Given& given, RunRequest& request)
{
  const auto format = index_of(given.value, given.option->value, given.option->name());
  request.kind = given.value == "string" ? LockKind{StringLock{}} : request.kind;
  request.beside = native_format(given.value);
  return format ? Result(Done{}) : format.error();
}

constexpr std::string_view advice = " (try one of them)";
constexpr OptionRow<RunRequest> kind_rows[] = {
    {{.names = "-s,--shared",
      .help = "take a read-write lock as a reader, together with other readers",
      .excludes = {"--exclusive,--permits,--format", advice}},
     choose_kind<Reader>},
    {{.names = "-x,-e,--exclusive",
      .help = "take a read-write lock as its only writer; without -s and -x: the plain lock",
      .excludes = {"--permits,--format", advice}},
     choose_kind<Writer>},
    {{.names = "--permits",
      .value = "N",
      .help = "at most N holders at a time",
      .range = Numbers{1, 1'000'000, "5"},
      .excludes = {"--format", advice}},
     read_permits},
};

std::string format_help()
{
  std::string text =
      "layout on the server; string: SET KEY NX PX, for clients that poll. A Java service that holds a lock of that "
      "name then cannot renew it; ";
  for (const Engine* const engine : built_engines()) {
    text += engine->beside_help.empty() ? "" : std::string(engine->beside_help) + "; ";
  }
  return text.substr(0, text.size() - 2) + " (redisson)";
}

constexpr OptionRow<RunRequest> format_row{
    {.names = "--format",
     .value = format_names,
     .help = format_help,
     .is_neutral = [](std::string_view value) { return value == "redisson" || knows_readers(native_format(value)); }},
    read_format};

}  // namespace

void add_key_options(OptionTable& options, RawKeys& raw, const OptionRow<RawKeys>& key)
{
  options.add(key, raw);
  options.add(prefix_row, raw);
}

Result<std::vector<LockName>> resolve_keys(const RawKeys& raw, std::span<const std::string> operands)
{
  std::vector<std::string> keys = raw.keys;
  keys.insert(keys.end(), operands.begin(), operands.end());
  if (keys.empty()) {
    return usage("no key: name the lock with -k KEY (try -k stock)");
  }

  std::vector<LockName> names;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (keys[i].empty()) {
      return usage(i < raw.keys.size() ? "--key: the key is empty (try -k stock)"
                                       : "the key is empty (name a lock, such as stock)");
    }
    ASSIGN_OR_RETURN(auto name, LockName::parse(raw.prefix + keys[i]));
    names.push_back(std::move(name));
  }
  return names;
}

Result<LockName> resolve_key(const RawKeys& raw, std::span<const std::string> operands)
{
  ASSIGN_OR_RETURN(auto names, resolve_keys(raw, operands));
  if (names.size() > 1) {
    return usage(std::to_string(names.size()) + " keys, but this verb takes one key (call it once for each key)");
  }
  return names.front();
}

Result<std::vector<LockName>> resolve_keys_to_take(const RawKeys& raw, std::span<const std::string> operands)
{
  ASSIGN_OR_RETURN(auto names, resolve_keys(raw, operands));
  for (const LockName& name : names) {
    RETURN_IF_ERROR(check_can_be_taken(name));
  }
  return names;
}

Result<LockName> resolve_key_to_take(const RawKeys& raw, std::span<const std::string> operands)
{
  ASSIGN_OR_RETURN(auto name, resolve_key(raw, operands));
  RETURN_IF_ERROR(check_can_be_taken(name));
  return name;
}

Error several_patterns(std::string_view verb)
{
  return usage("more than one pattern; quote the pattern if the shell expands it (try rlock " + std::string(verb) +
               " 'billing:*')");
}

std::string resolve_pattern(const RawKeys& raw, std::string_view pattern)
{
  std::string glob;
  for (const char c : raw.prefix) {
    if (std::string_view("*?[]^\\").find(c) != std::string_view::npos) {
      glob += '\\';
    }
    glob += c;
  }
  return glob + std::string(pattern);
}

void add_kind_options(OptionTable& options, RunRequest& request, std::string_view group)
{
  options.add(kind_rows, request, group);
  options.add(format_row, request);
}

}  // namespace rlock::cli
