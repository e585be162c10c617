// SPDX-License-Identifier: Apache-2.0
#include "cli/options/lock.h"

#include "cli/options/parse_words.h"
#include "lock/holder.h"
#include "process/signals.h"

#include <array>
#include <string>
#include <string_view>
#include <variant>

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

namespace {

constexpr NumberRule permits_rule{"--permits", 1, 1'000'000, "5"};

enum class Format { redisson, string };
constexpr std::array formats{Choice<Format>{"redisson", Format::redisson}, Choice<Format>{"string", Format::string}};

void add_kind_options(Options options, RawMode& raw)
{
  options.flag("-s,--shared", raw.shared, "take a read-write lock as a reader, together with other readers");
  options.flag("-x,-e,--exclusive", raw.exclusive,
               "take a read-write lock as its only writer; without -s and -x: the plain lock");
  options.text("--permits", raw.permits, "N", "at most N holders at a time");
}

void add_format_option(Options& options, RawMode& raw)
{
  options.text("--format", raw.format, "redisson|string",
               "layout on the server; string: SET KEY NX PX, for clients that poll. A Java service that "
               "holds a lock of that name then cannot renew it (redisson)");
}

}  // namespace

void add_mode_options(Options& options, RawMode& raw)
{
  add_kind_options(options, raw);
  add_format_option(options, raw);
}

void add_hidden_mode_options(Options& options, RawMode& raw)
{
  add_kind_options(options.in(""), raw);
  add_format_option(options, raw);
}

Result<Mode> resolve_mode(const RawMode& raw)
{
  const auto format = resolve_choice(raw.format.value_or("redisson"), "--format", formats);
  if (!format) {
    return format.error();
  }
  const bool string = *format == Format::string;
  const int kinds = (raw.shared ? 1 : 0) + (raw.exclusive ? 1 : 0) + (raw.permits ? 1 : 0) + (string ? 1 : 0);
  if (kinds > 1) {
    return usage("--shared, --exclusive, --permits and --format string exclude each other (try one of them)");
  }
  if (raw.permits) {
    const Result<int> limit = resolve_number(*raw.permits, permits_rule);
    return limit ? Result<Mode>(Permits{static_cast<unsigned>(*limit)}) : Result<Mode>(limit.error());
  }
  if (raw.shared) {
    return Mode{Reader{}};
  }
  if (raw.exclusive) {
    return Mode{Writer{}};
  }
  return string ? Mode{StringLock{}} : Mode{Plain{}};
}

Result<Millis> resolve_ttl(const Text& raw) { return raw ? resolve_duration(*raw, ttl_rule) : default_ttl; }

Result<int> resolve_busy_code(const Text& raw, ExitCode default_code)
{
  return raw ? resolve_number(*raw, busy_code_rule) : static_cast<int>(default_code);
}

Result<int> resolve_signal(std::string_view raw)
{
  const std::optional<int> signal = signal_number(raw);
  if (!signal) {
    return usage("--signal: '" + printable(raw) + "' is not a signal (try --signal TERM)");
  }
  return *signal;
}

void add_label_option(Options& options, Text& raw)
{
  options.text("--label", raw, "TEXT",
               [] { return "text that status and watch show, at most " + std::to_string(longest_label) + " bytes"; });
}

Result<std::string> resolve_label(const Text& raw)
{
  const std::string label = raw.value_or("");
  if (label.size() > longest_label) {
    return usage("--label: the text has " + std::to_string(label.size()) + " bytes, at most " +
                 std::to_string(longest_label) + " (shorten it)");
  }
  return label;
}

namespace {

constexpr NumberRule sync_rule{"--sync", 0, 1000, "1"};

}  // namespace

void add_sync_option(Options& options, Text& raw)
{
  options.text("--sync", raw, "N",
               "the lock counts as acquired only when N replicas have it; else rlock gives it back. Renewals "
               "do not wait for replicas (0)");
}

Result<unsigned> resolve_sync(const Text& raw, const ServerSpec& server)
{
  if (!raw) {
    return 0U;
  }
  const Result<int> replicas = resolve_number(*raw, sync_rule);
  if (!replicas) {
    return replicas.error();
  }
  if (*replicas > 0 && server.endpoints.size() > 1) {
    return usage("--sync is for the replicas of one server; several servers have none (leave out --sync)");
  }
  return static_cast<unsigned>(*replicas);
}

namespace {

Result<Done> check_option(std::string_view option, const RunRequest& request)
{
  const std::string name(option);
  if (request.wait == Millis{0}) {
    return usage(name + " is for runs that wait (leave out --no-wait, or " + name + ")");
  }
  if (request.names.size() > 1 || !request.shards.empty()) {
    return usage(name + " is for one lock (try one -k, without --shards)");
  }
  if (request.server.endpoints.size() > 1) {
    return usage(name + " is for one server: several servers have no queue (try one -S)");
  }
  return Done{};
}

}  // namespace

void add_concurrency_options(Options& options, RawConcurrency& raw)
{
  options.flag(
      "--latest", raw.latest,
      "of the runs that wait with --latest keep only this, the newest, in line; those before it end as if busy");
  options.flag(
      "--cancel-in-progress", raw.cancel_in_progress,
      "ask the holder to stop its job, as force-unlock does, and then run; with --latest: only the newest run");
}

Result<Done> resolve_concurrency(const RawConcurrency& raw, RunRequest& request)
{
  request.latest = raw.latest;
  request.cancel_in_progress = raw.cancel_in_progress;
  if (raw.latest) {
    if (const Result<Done> fits = check_option("--latest", request); !fits) {
      return fits;
    }
  }
  if (raw.cancel_in_progress && std::holds_alternative<Permits>(request.mode)) {
    return usage("--cancel-in-progress is for a lock with one holder, not for --permits (leave one of them out)");
  }
  return raw.cancel_in_progress ? check_option("--cancel-in-progress", request) : Done{};
}

}  // namespace rlock::cli
