// SPDX-License-Identifier: Apache-2.0
// rlock events: what happened to a lock lately.
#include "base/log.h"
#include "cli/options/keys.h"
#include "cli/options/server.h"
#include "cli/output/json.h"
#include "cli/output/output.h"
#include "cli/output/show.h"
#include "cli/verbs/table.h"
#include "store/redis/acl_error.h"
#include "store/redis/event_log_query.h"

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
  Trails(std::unique_ptr<Transport> transport, OpenedStore opened)
      : m_transport(std::move(transport)), m_opened(std::move(opened))
  {
  }

  void follow(const LockName& name) { m_trails.try_emplace(name); }

  Result<Done> search(std::string_view pattern)
  {
    const auto names = find_event_logs(*m_transport, pattern, m_opened.per_answer());
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
    const auto trails = read_event_logs(*m_transport, queries, m_opened.limit());
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
      return state.error().fault == ErrorCode::config ? Result(false) : Result<bool>(state.error());
    }
    return std::any_of(state->holders.begin(), state->holders.end(),
                       [&](const Holder& holder) { return holder.owner == owner; });
  }

  std::unique_ptr<Transport> m_transport;
  OpenedStore m_opened;
  std::map<LockName, Trail> m_trails;
};

Result<Done> tell(Result<std::vector<ShownEvent>> events, const RawEvents& typed)
{
  if (!events) {
    return events.error();
  }
  for (const ShownEvent& event : *events) {
    print(typed.json ? event_json(event) : show_event(event));
  }
  return finish_output();
}

// Through restarts of the server; only what cannot pass ends it.
Result<RunEnd> follow(Trails& trails, const RawEvents& typed, const std::optional<std::string>& pattern)
{
  bool is_away = false;
  for (int look = 1;; ++look) {
    trails.pause();
    const bool is_search = look % looks_between_searches == 0;
    const auto found = is_search && pattern ? trails.search(*pattern) : Result(Done{});
    const auto told = found ? tell(is_search ? trails.news_and_expired() : trails.news(), typed) : found;
    if (!told && !is_passing(told.error().fault)) {
      return told.error();
    }
    if (!told && !is_away) {
      Log(Verbosity::normal).notice(told.error().text + "; trying again");
    }
    is_away = !told;
  }
}

Result<Trails> open_trails(const RawEvents& typed, const Environment& environment)
{
  const Result<ServerSpec> server = resolve_server(typed.server, environment);
  if (!server) {
    return server.error();
  }
  if (server->endpoints.size() > 1) {
    return usage("events: each server tells its own (give one -S)");
  }
  Result<OpenedStore> opened = open_typed(typed.server, environment);
  if (!opened) {
    return opened.error();
  }
  auto transport = open_transport(*server, server->endpoints.front(), *opened->clock, StopToken::never());
  if (!transport) {
    return transport.error();
  }
  return Trails(*std::move(transport), *std::move(opened));
}

// Who asks for all locks meets those of others.
Error with_a_choice(Error error)
{
  if (is_about_keys(error) && error.text.ends_with(')')) {
    error.text.insert(error.text.size() - 1, "; with -k KEY or --prefix PREFIX no other locks are looked at");
  }
  return error;
}

Result<RunEnd> act(const RawEvents& typed, const Call& call)
{
  std::optional<std::string> pattern;
  std::vector<LockName> names;
  if (typed.keys.keys.empty() && call.operands.empty()) {
    pattern = resolve_pattern(typed.keys, "*");
  } else {
    auto meant = resolve_keys(typed.keys, call.operands);
    if (!meant) {
      return meant.error();
    }
    names = *std::move(meant);
  }
  Result<Trails> trails = open_trails(typed, call.environment);
  if (!trails) {
    return trails.error();
  }
  for (const LockName& name : names) {
    trails->follow(name);
  }
  const auto found = pattern ? trails->search(*pattern) : Result(Done{});
  const auto told = found ? tell(trails->news(), typed) : found;
  const auto rest = told ? tell(trails->news_and_expired(), typed) : told;
  if (!rest) {
    return pattern ? with_a_choice(rest.error()) : rest.error();
  }
  return typed.follow ? follow(*trails, typed, pattern) : ended(ExitCode::ok);
}

Act describe_verb(Options& options)
{
  auto typed = std::make_shared<RawEvents>();
  options.texts("-k,--key", typed->keys.keys, "KEY", "this lock, and others when given again (all)");
  describe_prefix(options, typed->keys);
  options.flag("-f,--follow", typed->follow, "go on, and tell what happens");
  options.flag("--json", typed->json, "one JSON object a line");
  describe_one_server(options, typed->server);
  return [typed](const Call& call) {
    Result<RunEnd> end = act(*typed, call);
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
    .describe = describe_verb,
};

}  // namespace rlock::cli
