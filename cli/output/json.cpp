// SPDX-License-Identifier: Apache-2.0
#include "cli/output/json.h"

#include "base/text.h"
#include "base/timestamp.h"

#include <algorithm>

#include <nlohmann/json.hpp>

namespace rlock::cli {
namespace {

using Json = nlohmann::ordered_json;  // the order of the contract is the order people read in

// The library leaves DEL and C1 as they are; outside of strings there are none.
std::string one_line(const Json& json)
{
  const std::string dumped = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  std::string line;
  line.reserve(dumped.size() + 1);
  for (std::string_view rest = dumped; !rest.empty();) {
    const std::string_view character = rest.substr(0, std::max<std::size_t>(utf8_length(rest), 1));
    line += begins_with_control(character) ? json_escape(character) : std::string(character);
    rest.remove_prefix(character.size());
  }
  return line + "\n";
}

Json or_null(const std::string& text) { return text.empty() ? Json() : Json(text); }
Json or_null(std::int64_t number) { return number == 0 ? Json() : Json(number); }

// What holders and waiters tell alike.
void add_info(Json& json, const HolderInfo& info)
{
  const auto since = iso_utc(info.since_ms);
  json["host"] = or_null(info.host);
  json["pid"] = or_null(info.pid);
  json["user"] = or_null(info.user);
  json["command"] = or_null(info.command);
  json["label"] = or_null(info.label);
  json["since"] = since ? Json(*since) : Json();
}

Json holder_json(const Holder& holder)
{
  const HolderInfo info = holder.info.value_or(HolderInfo{});
  Json json{{"token", holder.owner.text()},
            {"owner", holder.owner.text()},
            {"count", holder.count}};  // owner: for one release
  add_info(json, info);
  json["lease_ms"] = or_null(info.lease.count());
  json["auto"] = holder.info ? Json(info.automatic) : Json();
  return json;
}

Json holders_json(const std::vector<Holder>& holders)
{
  Json all = Json::array();
  for (const Holder& holder : holders) {
    all.push_back(holder_json(holder));
  }
  return all;
}

Json waiting_json(const std::vector<Waiter>& waiting)
{
  Json all = Json::array();
  for (const Waiter& waiter : waiting) {
    Json json{{"place", all.size() + 1}};
    add_info(json, waiter.info.value_or(HolderInfo{}));
    all.push_back(std::move(json));
  }
  return all;
}

// A free lock: 0. One that never expires: null.
Json ttl_of(const LockState& state)
{
  if (!state.held()) {
    return 0;
  }
  return state.ttl ? Json(state.ttl->count()) : Json();
}

// How the lock was taken from its holder, and who that was; or that it was not, and who has it now.
struct Told {
  bool broken;
  Json how;
  Json holder;
};
struct Teller {
  Told operator()(const ReleasedByHolder& end) const { return {true, "released", holder_json(end.holder)}; }
  Told operator()(const ForceExpired& end) const { return {true, "expired", holder_json(end.holder)}; }
  Told operator()(const Broken& end) const { return {true, "broken", holder_json(end.holder)}; }
  Told operator()(const ForceChanged& end) const { return {false, nullptr, holder_json(end.holder)}; }
  Told operator()(const ForceFree&) const { return {false, nullptr, nullptr}; }
};

Json once_json(const std::optional<OnceSuccess>& once)
{
  return once ? Json{{"at", iso_utc(once->at_ms).value_or("")}, {"for_ms", once->remembered_for.count()}} : Json();
}

// Of permits, if it is known.
Json limit_of(const LockState& state)
{
  const auto* permits = std::get_if<Permits>(&state.mode);
  return permits != nullptr && permits->limit > 0 ? Json(permits->limit) : Json();
}

}  // namespace

std::string status_json(const LockState& state)
{
  return one_line({{"key", state.name.text()},
                   {"held", state.held()},
                   {"format", kind_of(state.mode).json_format},
                   {"mode", kind_of(state.mode).json_mode},
                   {"limit", limit_of(state)},
                   {"ttl_ms", ttl_of(state)},
                   {"fence", state.fence == 0 ? Json() : Json(state.fence)},
                   {"holders", holders_json(state.holders)},
                   {"waiting", waiting_json(state.waiting)},
                   {"once", once_json(state.once)}});
}

std::string ttl_json(const LockState& state)
{
  return one_line({{"key", state.name.text()}, {"ttl_ms", ttl_of(state)}});
}

std::string lease_json(const LockName& name, const Hold& hold, std::uint64_t fence, std::optional<Millis> ttl,
                       std::optional<std::size_t> shard)
{
  return one_line({{"key", name.text()},
                   {"token", hold.token()},
                   {"fence", fence == 0 ? Json() : Json(fence)},
                   {"ttl_ms", ttl ? Json(ttl->count()) : Json()},
                   {"shard", shard ? Json(*shard) : Json()}});
}

std::string force_json(const LockName& name, const ForceEnd& end)
{
  const Told told = std::visit(Teller{}, end);
  return one_line({{"key", name.text()}, {"broken", told.broken}, {"how", told.how}, {"holder", told.holder}});
}

std::string event_json(const ShownEvent& shown)
{
  const LockEvent& event = shown.event;
  const HolderInfo info = event.info.value_or(HolderInfo{});
  return one_line({{"key", shown.name.text()},
                   {"time", iso_utc(event.time_ms).value_or("")},
                   {"event", name_of(event.what)},
                   {"token", event.owner.text()},
                   {"owner", event.owner.text()},  // for one release
                   {"fence", event.fence == 0 ? Json() : Json(event.fence)},
                   {"by", or_null(event.by)},
                   {"from", or_null(event.from)},
                   {"left_ms", event.what == LockEvent::What::renewed_late ? Json(event.left.count()) : Json()},
                   {"host", or_null(info.host)},
                   {"pid", or_null(info.pid)},
                   {"user", or_null(info.user)},
                   {"command", or_null(info.command)},
                   {"label", or_null(info.label)}});
}

std::string distribution_json(std::string_view measure, const Distribution& times)
{
  Json histogram = Json::array();
  for (const Bucket& bucket : times.histogram) {
    histogram.push_back({{"le_us", bucket.most.count()}, {"count", bucket.count}});
  }
  return one_line({{"measure", measure},
                   {"count", times.count},
                   {"p50_us", times.p50.count()},
                   {"p90_us", times.p90.count()},
                   {"p99_us", times.p99.count()},
                   {"max_us", times.max.count()},
                   {"histogram", histogram}});
}

std::string pairs_json(double per_second, unsigned connections)
{
  return one_line(
      {{"measure", "pairs"}, {"per_second", static_cast<std::int64_t>(per_second)}, {"connections", connections}});
}

std::string finding_json(const Finding& finding, std::string_view status, std::string_view server)
{
  return one_line({{"check", finding.check},
                   {"status", status},
                   {"found", finding.found},
                   {"advice", or_null(finding.advice)},
                   {"server", or_null(std::string(server))}});
}

std::string acl_json(std::string_view user, const AclRules& rights, std::string_view line)
{
  return one_line({{"user", user},
                   {"keys", rights.keys},
                   {"channels", rights.channels},
                   {"commands", rights.commands},
                   {"line", line}});
}

std::string forget_json(const LockName& name, bool forgotten)
{
  return one_line({{"key", name.text()}, {"forgotten", forgotten}});
}

std::string version_json(std::string_view version) { return one_line({{"version", version}}); }

}  // namespace rlock::cli
