// SPDX-License-Identifier: Apache-2.0
// rlock events: what happened to a lock lately.
#include "base/log.h"
#include "cli/options/keys.h"
#include "cli/options/server.h"
#include "cli/output/json.h"
#include "cli/output/output.h"
#include "cli/output/show.h"
#include "cli/verbs/table.h"
#include "lock/abilities.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

namespace rlock::cli {
namespace {

using std::chrono_literals::operator""ms;

constexpr Millis between_looks = 500ms;
constexpr int looks_between_searches = 10;  // for further locks, and for leases that have ended

struct RawEvents {
  RawKeys keys;
  RawServer server;
  bool follow = false;
  bool json = false;
};

constexpr std::array<std::string_view, 3> examples{
    "rlock events -k stock",
    "rlock events --follow",
    "rlock events --json -k stock | grep '\"lost\"'",
};

constexpr std::array exits{
    ExitLine{"0", "told, also when nothing has happened lately"},
    usage_exit,
    server_exit,
    output_exit,
    refused_exit,
    config_exit,
};

// The trails of some locks, or of all, from one server.
class Trails {
 public:
  // The store must offer an event log.
  explicit Trails(OpenedStore opened) : m_log(opened.store->event_log()), m_opened(std::move(opened)) {}

  [[nodiscard]] bool is_about_one_lock(const Error& refused) const { return m_log->is_about_one_lock(refused); }

  void follow(const LockName& name) { m_trails.try_emplace(name); }

  Result<Done> search(std::string_view pattern)
  {
    const auto names = m_log->find_logs(pattern, m_opened.per_answer());
    if (!names) {
      return names.error();
    }
    for (const LockName& name : *names) {
      follow(name);
    }
    return Done{};
  }

  // What is new, in its order.
  Result<std::vector<ShownEvent>> news()
  {
    std::vector<EventLogQuery> queries;
    for (const auto& [name, trail] : m_trails) {
      queries.push_back({name, trail.last});
    }
    const auto trails = m_log->read_logs(queries, m_opened.limit());
    if (!trails) {
      return trails.error();
    }
    std::vector<ShownEvent> events;
    for (std::size_t i = 0; i < trails->size(); ++i) {
      const auto& entries = (*trails)[i];
      Trail& trail = m_trails[queries[i].name];
      trail.last = entries.empty() ? trail.last : entries.back().text;
      for (LockEvent& event : trail.reader.read(entries)) {
        events.push_back({queries[i].name, std::move(event)});
      }
    }
    std::stable_sort(events.begin(), events.end(), [](const ShownEvent& one, const ShownEvent& other) {
      return one.event.time_ms < other.event.time_ms;
    });
    return events;
  }

  // Those who have it by the trail, but not on the server. Their end may have been written since the trail was read: so it
  // is read once more, before they are said to have expired.
  Result<std::vector<ShownEvent>> news_and_expired()
  {
    std::vector<std::pair<LockName, Owner>> gone;
    for (auto& [name, trail] : m_trails) {
      const auto owner = trail.reader.holder();
      const auto held = owner ? holds(name, *owner) : Result(true);
      if (!held) {
        return held.error();
      }
      if (!*held) {
        gone.emplace_back(name, *owner);
      }
    }
    auto events = news();
    for (auto each = gone.begin(); events && each != gone.end(); ++each) {
      EventLogReader& reader = m_trails[each->first].reader;
      if (reader.holder() == each->second) {
        events->push_back({each->first, reader.expired(wall_clock_ms())});
      }
    }
    return events;
  }

  void pause() const { m_opened.clock->sleep_until(m_opened.clock->now() + between_looks, StopToken::never()); }

 private:
  struct Trail {
    EventLogReader reader;
    std::string last;
  };

  Result<bool> holds(const LockName& name, const Owner& owner)
  {
    const auto state = m_opened.store->inspect(name, m_opened.limit());
    if (!state) {
      return state.error().code == ErrorCode::config ? Result(false) : Result<bool>(state.error());
    }
    return std::any_of(state->holders.begin(), state->holders.end(),
                       [&](const Holder& holder) { return holder.owner == owner; });
  }

  EventLog* m_log;  // of m_opened.store
  OpenedStore m_opened;
  std::map<LockName, Trail> m_trails;
};

Result<Done> tell(Result<std::vector<ShownEvent>> events, const RawEvents& raw)
{
  if (!events) {
    return events.error();
  }
  for (const ShownEvent& event : *events) {
    print(raw.json ? event_json(event) : show_event(event));
  }
  return finish_output();
}

// Through restarts of the server; only what cannot pass ends it.
Result<RunEnd> follow(Trails& trails, const RawEvents& raw, const std::optional<std::string>& pattern)
{
  bool is_away = false;
  for (int look = 1;; ++look) {
    trails.pause();
    const bool is_search = look % looks_between_searches == 0;
    const auto found = is_search && pattern ? trails.search(*pattern) : Result(Done{});
    const auto told = found ? tell(is_search ? trails.news_and_expired() : trails.news(), raw) : found;
    if (!told && !is_passing(told.error().code)) {
      return told.error();
    }
    if (!told && !is_away) {
      Log(Verbosity::normal).notice(told.error().text + "; trying again");
    }
    is_away = !told;
  }
}

Result<Trails> open_trails(const RawEvents& raw, const Environment& environment)
{
  const Result<ServerSpec> server = resolve_server(raw.server, environment);
  if (!server) {
    return server.error();
  }
  if (server->endpoints.size() > 1) {
    return usage("events: each server tells its own (give one -S)");
  }
  Result<OpenedStore> opened = open_server(raw.server, environment);
  if (!opened) {
    return opened.error();
  }
  if (opened->store->event_log() == nullptr) {
    return not_offered(events_verb.name, opened->server);
  }
  return Trails(*std::move(opened));
}

// Who asks for all locks meets those of others.
Error with_a_choice(const Trails& trails, Error error)
{
  if (trails.is_about_one_lock(error) && error.text.ends_with(')')) {
    error.text.insert(error.text.size() - 1, "; with -k KEY or --prefix PREFIX no other locks are looked at");
  }
  return error;
}

Result<RunEnd> execute(const RawEvents& raw, const Call& call)
{
  std::optional<std::string> pattern;
  std::vector<LockName> names;
  if (raw.keys.keys.empty() && call.operands.empty()) {
    pattern = resolve_pattern(raw.keys, "*");
  } else {
    auto meant = resolve_keys(raw.keys, call.operands);
    if (!meant) {
      return meant.error();
    }
    names = *std::move(meant);
  }
  Result<Trails> trails = open_trails(raw, call.environment);
  if (!trails) {
    return trails.error();
  }
  for (const LockName& name : names) {
    trails->follow(name);
  }
  const auto found = pattern ? trails->search(*pattern) : Result(Done{});
  const auto told = found ? tell(trails->news(), raw) : found;
  const auto rest = told ? tell(trails->news_and_expired(), raw) : told;
  if (!rest) {
    return pattern ? with_a_choice(*trails, rest.error()) : rest.error();
  }
  return raw.follow ? follow(*trails, raw, pattern) : ended(ExitCode::ok);
}

VerbAction add_options(Options& options)
{
  auto raw = std::make_shared<RawEvents>();
  options.texts("-k,--key", raw->keys.keys, "KEY", "this lock, and others when given again (all)");
  add_prefix_option(options, raw->keys);
  options.flag("-f,--follow", raw->follow, "go on, and tell what happens");
  options.flag("--json", raw->json, "one JSON object a line");
  add_single_server_options(options, raw->server);
  return [raw](const Call& call) {
    Result<RunEnd> end = execute(*raw, call);
    return !end && drop_unread_output() ? Result<RunEnd>(ended(ExitCode::ok)) : std::move(end);
  };
}

}  // namespace

const Verb events_verb{
    .name = "events",
    .summary = "tell what happened to locks lately, to whom and by whom",
    .synopsis = "[OPTION...] [[-k] KEY...]",
    .examples = examples,
    .exits = exits,
    .operands = Operands::anywhere,
    .add_options = add_options,
};

}  // namespace rlock::cli
