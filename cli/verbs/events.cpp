// SPDX-License-Identifier: Apache-2.0
// rlock events: what happened to locks lately.
#include "base/log.h"
#include "base/text.h"
#include "cli/options/lock.h"
#include "cli/options/output.h"
#include "cli/options/server.h"
#include "cli/output/json.h"
#include "cli/output/output.h"
#include "cli/output/show.h"
#include "cli/verbs/ask.h"
#include "cli/verbs/dispatch.h"
#include "cli/verbs/known_locks.h"
#include "redis/acl.h"

#include <algorithm>
#include <map>
#include <utility>

namespace rlock::cli {
namespace {

using std::chrono_literals::operator""ms;

constexpr Millis poll_interval = 500ms;
constexpr int polls_per_search = 10;  // a search looks for new locks, and for leases that have ended

struct RawEvents {
  RawKeys keys;
  RawServer server;
  bool follow = false;
  bool json = false;
};

// The event logs of some locks, or of all locks, of one server.
class FollowedLocks {
 public:
  explicit FollowedLocks(OpenedStore opened) : m_opened(std::move(opened)) {}

  void follow(const LockName& name) { m_logs.try_emplace(name); }

  Result<Done> search(std::string_view pattern)
  {
    ASSIGN_OR_RETURN(const auto names, m_opened.store->find_logs(pattern, m_opened.per_answer()));
    for (const LockName& name : names) {
      follow(name);
    }
    return Done{};
  }

  // Events that have not been read before, in the order of their times.
  Result<std::vector<ShownEvent>> new_events()
  {
    std::vector<EventLogQuery> queries;
    for (const auto& [name, log] : m_logs) {
      queries.push_back({name, log.last});
    }
    ASSIGN_OR_RETURN(const auto logs, m_opened.store->read_logs(queries, m_opened.limit()));
    std::vector<ShownEvent> events;
    for (std::size_t i = 0; i < logs.size(); ++i) {
      const auto& entries = logs[i];
      LockLog& log = m_logs[queries[i].name];
      log.last = entries.empty() ? log.last : entries.back().text;
      for (LockEvent& event : log.reader.read(entries)) {
        events.push_back({queries[i].name, std::move(event)});
      }
    }
    std::stable_sort(events.begin(), events.end(), [](const ShownEvent& one, const ShownEvent& other) {
      return one.event.time_ms < other.event.time_ms;
    });
    return events;
  }

  // The same, with an `expired` event for each holder that has the lock by its event log, but not on the server. The end of such
  // a hold may have been logged after the log was read, so the log is read again first.
  Result<std::vector<ShownEvent>> new_and_expired_events()
  {
    ASSIGN_OR_RETURN(auto held, holders());
    std::vector<std::pair<LockName, Owner>> gone;
    for (auto& [name, log] : m_logs) {
      const auto owner = log.reader.holder();
      if (owner && std::ranges::find(held[name], *owner, &Holder::owner) == held[name].end()) {
        gone.emplace_back(name, *owner);
      }
    }
    auto events = new_events();
    for (auto each = gone.begin(); events && each != gone.end(); ++each) {
      EventLogReader& reader = m_logs[each->first].reader;
      if (reader.holder() == each->second) {
        events->push_back({each->first, reader.expired(wall_clock_ms())});
      }
    }
    return events;
  }

  // The locks that were named and whose logs are empty.
  [[nodiscard]] std::vector<LockName> without_events() const
  {
    std::vector<LockName> names;
    for (const auto& [name, log] : m_logs) {
      if (log.last.empty()) {
        names.push_back(name);
      }
    }
    return names;
  }

  void pause() const { m_opened.clock->sleep_until(m_opened.clock->now() + poll_interval, StopToken::never()); }

 private:
  struct LockLog {
    EventLogReader reader;
    std::string last;
  };

  // On the server, of the locks that have a holder by their event log.
  Result<std::map<LockName, std::vector<Holder>>> holders()
  {
    std::vector<LockName> names;
    for (auto& [name, log] : m_logs) {
      if (log.reader.holder()) {
        names.push_back(name);
      }
    }
    ASSIGN_OR_RETURN(auto states, m_opened.store->states_of(names, m_opened.per_answer()));
    std::map<LockName, std::vector<Holder>> all;
    for (LockState& state : states) {
      all[state.name] = std::move(state.holders);
    }
    return all;
  }

  OpenedStore m_opened;
  std::map<LockName, LockLog> m_logs;
};

Result<Done> print_events(Result<std::vector<ShownEvent>> events, const RawEvents& raw)
{
  if (!events) {
    return events.error();
  }
  for (const ShownEvent& event : *events) {
    print(raw.json ? event_json(event) : show_event(event));
  }
  return finish_output();
}

// Goes on while the server is unreachable; ends with an error that does not pass.
Result<RunEnd> follow(FollowedLocks& logs, const RawEvents& raw, const std::optional<std::string>& pattern)
{
  bool is_unreachable = false;
  for (int look = 1;; ++look) {
    logs.pause();
    const bool is_search = look % polls_per_search == 0;
    const auto found = is_search && pattern ? logs.search(*pattern) : Result(Done{});
    const auto printed =
        found ? print_events(is_search ? logs.new_and_expired_events() : logs.new_events(), raw) : found;
    if (!printed && !is_passing(printed.error().code)) {
      return printed.error();
    }
    if (!printed && !is_unreachable) {
      Log(Verbosity::normal).notice(printed.error().text + "; trying again");
    }
    is_unreachable = !printed;
  }
}

Result<FollowedLocks> open_event_logs(const RawEvents& raw, const Environment& environment)
{
  ASSIGN_OR_RETURN(auto opened, open_server(raw.server, environment));
  if (!opened.store->traits().has_event_log) {
    return usage("events: every server has events of its own (give one -S)");
  }
  return FollowedLocks(std::move(opened));
}

// For a user who may read some locks only, but asked for all.
Error with_advice(Error error)
{
  if (is_about_keys(error) && error.text.ends_with(')')) {
    error.text.insert(error.text.size() - 1, "; -k KEY or --prefix PREFIX limits the locks that rlock reads");
  }
  return error;
}

void tell_names_without_events(const FollowedLocks& logs)
{
  for (const LockName& name : logs.without_events()) {
    const bool is_pattern = is_glob(name.text());
    Log(Verbosity::normal)
        .notice("no event of " + printable(name.text()) + " is known" +
                (is_pattern ? " (this verb takes names; rlock history takes patterns)" : ""));
  }
}

Result<RunEnd> execute(const RawEvents& raw, const Call& call)
{
  std::optional<std::string> pattern;
  std::vector<LockName> names;
  if (raw.keys.keys.empty() && call.operands.empty()) {
    pattern = resolve_pattern(raw.keys, "*");
  } else {
    ASSIGN_OR_RETURN(auto given, resolve_keys(raw.keys, call.operands));
    names = std::move(given);
  }
  ASSIGN_OR_RETURN(auto logs, open_event_logs(raw, call.environment));
  for (const LockName& name : names) {
    logs.follow(name);
  }
  const auto found = pattern ? logs.search(*pattern) : Result(Done{});
  const auto printed = found ? print_events(logs.new_events(), raw) : found;
  const auto rest = printed ? print_events(logs.new_and_expired_events(), raw) : printed;
  if (!rest) {
    return pattern ? with_advice(rest.error()) : rest.error();
  }
  if (raw.follow) {
    return follow(logs, raw, pattern);
  }
  if (!raw.json) {
    tell_names_without_events(logs);
  }
  return ended(ExitCode::ok);
}

// A reader of the pipe that ended is no error, as with `rlock events --follow | head`.
Result<RunEnd> execute_for_reader(const RawEvents& raw, const Call& call)
{
  Result<RunEnd> end = execute(raw, call);
  return !end && drop_unread_output() ? Result<RunEnd>(ended(ExitCode::ok)) : std::move(end);
}

constexpr OptionRow<RawKeys> events_keys_row = key_row("name of a lock; may be given several times (all locks)");
constexpr OptionRow<RawEvents> follow_row{{.names = "-f,--follow", .help = "keep running, and print new events"},
                                          set<&RawEvents::follow>};

void add_events_options(OptionTable& options, RawEvents& raw)
{
  add_key_options(options, raw.keys, events_keys_row);
  options.add(follow_row, raw);
  options.add(json_lines_row, raw.json);
  add_utc_option(options);
  add_single_server_options(options, raw.server);
}

}  // namespace

const Verb events_verb{
    .name = "events",
    .summary = "print what happened to locks lately, to which holder and by whom",
    .synopsis = "[OPTION...] [[-k] KEY...]",
    .examples = {"rlock events -k stock", "rlock events --follow", "rlock events --json -k stock | grep '\"lost\"'"},
    .own_exits = {{ExitCode::ok, "printed, also when there are no events"}},
    .add_options = bound<RawEvents, add_events_options, execute_for_reader>,
};

}  // namespace rlock::cli
