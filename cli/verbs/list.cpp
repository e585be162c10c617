// SPDX-License-Identifier: Apache-2.0
// rlock list: prints the locks that are held now.
#include "cli/verbs/list.h"

#include "base/log.h"
#include "base/text.h"
#include "cli/options/color.h"
#include "cli/options/keys.h"
#include "cli/options/runs.h"
#include "cli/options/sort.h"
#include "cli/output/json.h"
#include "cli/output/output.h"
#include "cli/output/prometheus.h"
#include "cli/output/show.h"
#include "cli/verbs/table.h"
#include "lock/abilities.h"

#include <algorithm>
#include <array>

namespace rlock::cli {
namespace {

struct RawList {
  RawKeys keys;
  RawServer server;
  RawOutputFormat output_format;
  Text sort;
  Text color;
};

constexpr std::array<std::string_view, 3> examples{
    "rlock list",
    "rlock list --sort age",
    "rlock list --json 'billing:*'",
};

constexpr std::array exits{
    ExitLine{ExitCode::ok, "at least one lock is held; with -o prometheus always"},
    ExitLine{ExitCode::no, "no lock is held; standard error says so, unless --json is given"},
};

Result<RunEnd> execute(const RawList& raw, const Call& call)
{
  if (call.operands.size() > 1) {
    return several_patterns(list_verb.name);
  }
  ListOptions options{.pattern = resolve_pattern(raw.keys, call.operands.empty() ? every_lock : call.operands.front())};
  const Result<Done> given = first_error({assign(resolve_output_format(raw.output_format), options.output_format),
                                          assign(resolve_sort(raw.sort), options.sort),
                                          assign(resolve_colours(raw.color, call.environment), options.colours)});
  if (!given) {
    return given.error();
  }
  const Result<OpenedStore> opened = open_server(raw.server, call.environment);
  if (!opened) {
    return opened.error();
  }
  return print_held_locks(*opened, options, list_verb.name);
}

void add_list_options(Options& options, RawList& raw)
{
  add_prefix_option(options, raw.keys);
  add_sort_option(options, raw.sort);
  add_output_format_options(options, raw.output_format);
  add_color_option(options, raw.color);
  add_server_options(options, raw.server);
}

}  // namespace

Result<std::vector<LockState>> held_locks(const OpenedStore& opened, const std::string& pattern, std::string_view verb)
{
  LockListing* const listing = opened.store->listing();
  if (listing == nullptr) {
    return not_offered(verb, opened.server);
  }
  auto states = listing->list(pattern, opened.per_answer());
  if (states) {
    std::erase_if(*states, [](const LockState& state) { return !state.held(); });
  }
  return states;
}

void tell_none_held(const ListOptions& options)
{
  if (options.output_format == OutputFormat::text) {
    const std::string which = options.pattern == every_lock ? "no lock" : "no lock that matches " + options.pattern;
    Log(Verbosity::normal).notice(printable(which) + " is held");
  }
}

Result<RunEnd> print_held_locks(const OpenedStore& opened, const ListOptions& options, std::string_view verb)
{
  auto states = held_locks(opened, options.pattern, verb);
  if (!states) {
    return states.error();
  }
  if (options.output_format == OutputFormat::json) {
    if (const auto added = add_runs(opened, LogPart::end, *states); !added) {
      return added.error();
    }
  }
  if (states->empty()) {
    tell_none_held(options);
  }
  const std::int64_t now_ms = wall_clock_ms();
  sort_locks(*states, options.sort, now_ms);
  switch (options.output_format) {
    case OutputFormat::text: print(show_list(*states, now_ms, options.colours)); break;
    case OutputFormat::prometheus: print(prometheus_text(*states, now_ms)); break;
    case OutputFormat::json:
      std::for_each(states->begin(), states->end(), [](const LockState& state) { print(status_json(state)); });
      break;
  }
  const bool is_scraped = options.output_format == OutputFormat::prometheus;
  return ended(!states->empty() || is_scraped ? ExitCode::ok : ExitCode::no);
}

const Verb list_verb{
    .name = "list",
    .summary = "list the locks that are held, all or those that match a glob",
    .synopsis = "[OPTION...] [PATTERN]",
    .examples = examples,
    .own_exits = exits,
    .common_exits = asking_codes,
    .operands = Operands::anywhere,
    .add_options = bound<RawList, add_list_options, execute>,
};

}  // namespace rlock::cli
