// SPDX-License-Identifier: Apache-2.0
// rlock status: prints the holders of a lock, their commands and times, and the queue.
#include "cli/options/color.h"
#include "cli/options/keys.h"
#include "cli/options/runs.h"
#include "cli/output/json.h"
#include "cli/output/output.h"
#include "cli/output/prometheus.h"
#include "cli/output/show.h"
#include "cli/verbs/list.h"
#include "cli/verbs/table.h"

#include <array>
#include <variant>

namespace rlock::cli {
namespace {

struct RawStatus {
  RawKeys keys;
  RawServer server;
  RawOutputFormat output_format;
  Text color;
};

constexpr std::array<std::string_view, 4> examples{
    "rlock status -k stock",
    "rlock status --json stock billing",
    "rlock status 'deploy:*'",
    "rlock status -o prometheus stock >locks.prom.new",
};

constexpr std::array exits{
    ExitLine{ExitCode::ok, "all of the locks are held, and each PATTERN matches one; with -o prometheus always"},
    ExitLine{ExitCode::no, "at least one is free or matches nothing; without a KEY: no lock is held"},
};

struct Pattern {
  std::string glob;
};
using Subject = std::variant<LockName, Pattern>;

// --key is always a name. A word with a special character of globs is a pattern.
Result<std::vector<Subject>> resolve_subjects(const RawStatus& raw, std::span<const std::string> words)
{
  std::vector<Subject> subjects;
  RawKeys keys{.keys = raw.keys.keys, .prefix = raw.keys.prefix};
  for (const std::string& word : words) {
    if (word.find_first_of("*?[") == std::string::npos) {
      keys.keys.push_back(word);
    } else {
      subjects.emplace_back(Pattern{resolve_pattern(raw.keys, word)});
    }
  }
  if (keys.keys.empty()) {
    return subjects;
  }
  const Result<std::vector<LockName>> names = resolve_keys(keys, {});
  if (!names) {
    return names.error();
  }
  subjects.insert(subjects.begin(), names->begin(), names->end());
  return subjects;
}

Result<std::vector<LockState>> states_of(const Subject& subject, const OpenedStore& opened)
{
  if (const auto* pattern = std::get_if<Pattern>(&subject)) {
    return held_locks(opened, pattern->glob, status_verb.name);
  }
  const Result<LockState> state = opened.store->inspect(std::get<LockName>(subject), opened.limit());
  if (!state) {
    return state.error();
  }
  return std::vector{*state};
}

void print_states(const std::vector<LockState>& states, const ListOptions& options)
{
  for (const LockState& state : states) {
    print(options.output_format == OutputFormat::json ? status_json(state)
                                                      : show_status(state, wall_clock_ms(), options.colours));
  }
}

Result<RunEnd> print_subjects(const std::vector<Subject>& subjects, const OpenedStore& opened,
                              const ListOptions& options)
{
  const bool is_scraped = options.output_format == OutputFormat::prometheus;
  bool all_held = true;
  std::vector<LockState> scraped;  // printed together, by family
  for (const Subject& subject : subjects) {
    Result<std::vector<LockState>> states = states_of(subject, opened);
    if (!states) {
      return states.error();
    }
    if (const auto added = add_runs(opened, LogPart::all, *states); !added) {
      return added.error();
    }
    all_held = all_held && !states->empty() && states->front().held();
    if (const auto* pattern = std::get_if<Pattern>(&subject); pattern != nullptr && states->empty()) {
      tell_none_held({.pattern = pattern->glob, .output_format = options.output_format});
    }
    if (is_scraped) {
      scraped.insert(scraped.end(), states->begin(), states->end());
    } else {
      print_states(*states, options);
    }
  }
  if (is_scraped) {  // a collector takes another exit code for a failure and publishes nothing
    print(prometheus_text(scraped, wall_clock_ms()));
  }
  return ended(all_held || is_scraped ? ExitCode::ok : ExitCode::no);
}

Result<RunEnd> execute(const RawStatus& raw, const Call& call)
{
  const Result<std::vector<Subject>> subjects = resolve_subjects(raw, call.operands);
  if (!subjects) {
    return subjects.error();
  }
  ListOptions options{.pattern = resolve_pattern(raw.keys, every_lock)};
  const Result<Done> given = first_error({assign(resolve_output_format(raw.output_format), options.output_format),
                                          assign(resolve_colours(raw.color, call.environment), options.colours)});
  if (!given) {
    return given.error();
  }
  const Result<OpenedStore> opened = open_server(raw.server, call.environment);
  if (!opened) {
    return opened.error();
  }
  return subjects->empty() ? print_held_locks(*opened, options, status_verb.name)
                           : print_subjects(*subjects, *opened, options);
}

void add_status_options(Options& options, RawStatus& raw)
{
  add_key_options(options, raw.keys);
  add_output_format_options(options, raw.output_format);
  add_color_option(options, raw.color);
  add_server_options(options, raw.server);
}

}  // namespace

const Verb status_verb{
    .name = "status",
    .summary = "show who holds a lock, doing what, and who waits for it",
    .synopsis = "[OPTION...] [[-k] KEY | PATTERN]...",
    .examples = examples,
    .own_exits = exits,
    .common_exits = asking_codes,
    .operands = Operands::anywhere,
    .add_options = bound<RawStatus, add_status_options, execute>,
};

}  // namespace rlock::cli
