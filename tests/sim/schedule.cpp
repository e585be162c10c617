// SPDX-License-Identifier: Apache-2.0
#include "sim/schedule.h"

#include "sim/world.h"

#include <algorithm>
#include <array>

namespace rlock::sim {
namespace {

using Kinds = std::vector<FaultKind>;

const Kinds crashes{FaultKind::kill_runner, FaultKind::kill_guardian, FaultKind::kill_both};
const Kinds pauses{FaultKind::stop_runner, FaultKind::stop_guardian, FaultKind::stop_both};
const Kinds network{FaultKind::cut_off, FaultKind::lose_requests, FaultKind::lose_answers, FaultKind::slow_down,
                    FaultKind::reset};
const Kinds harmless{FaultKind::restart_server, FaultKind::forget_scripts};
const Kinds losses{FaultKind::lose_all_data, FaultKind::fail_over, FaultKind::step_clock, FaultKind::delete_lock};

constexpr std::array<const char*, 21> names{"stop the runner",  "stop the guardian", "stop runner and guardian",
                                            "kill the runner",  "kill the guardian", "kill runner and guardian",
                                            "cut off",          "lose requests",     "lose answers",
                                            "slow down",        "reset connections", "restart the server",
                                            "lose all data",    "fail over",         "step the server's clock",
                                            "delete the lock",  "forget scripts",    "force-unlock",
                                            "cut off a member", "stop the leader",   "step the clock"};

class Maker {
 public:
  explicit Maker(std::uint64_t seed) : m_seed(seed), m_rng(seed * 7919 + 1), m_later(seed * 7919 + 2) {}

  Schedule make()
  {
    Schedule schedule{.seed = m_seed,
                      .ttl = one_of<Millis>({Millis{600}, Millis{1000}, Millis{3000}, Millis{10'000}}),
                      .server_timeout = one_of<Millis>({Millis{300}, Millis{1000}, Millis{5000}}),
                      .latency = one_of<Millis>({Millis{1}, Millis{1}, Millis{3}}),
                      .clients = {},
                      .faults = {}};
    const int which_kind = number(0, 9);
    const int clients = number(2, 8);
    for (int i = 0; i < clients; ++i) {
      schedule.clients.push_back(client(i, kind_of_clients(which_kind), schedule.ttl));
    }
    add_concurrency_options(schedule.clients);
    add_freezes(schedule.clients);
    const Kinds kinds = kinds_of_faults();
    const int faults = kinds.empty() ? 0 : number(1, 12);
    const Millis during = std::max(Millis{2000}, schedule.ttl * 3);
    for (int i = 0; i < faults; ++i) {
      schedule.faults.push_back(fault(one_of(kinds), clients, during, schedule.ttl));
    }
    if (faults > 0 && m_later.one_in(4)) {
      schedule.faults.push_back(force(clients, during, schedule.ttl));
    }
    freeze_machines(schedule);
    add_line_options(schedule);
    std::sort(schedule.faults.begin(), schedule.faults.end(),
              [](const Fault& a, const Fault& b) { return a.at < b.at; });
    return schedule;
  }

 private:
  int number(int least, int most)
  {
    return least + static_cast<int>(below(m_rng, static_cast<std::uint64_t>(most - least + 1)));
  }
  Millis time(Millis least, Millis most) { return least + Millis{m_rng.up_to((most - least).count())}; }
  template <typename Value>
  Value one_of(const std::vector<Value>& values)
  {
    return values[below(m_rng, values.size())];
  }

  LockKind kind_of_clients(int which)
  {
    switch (which) {
      case 0:
      case 1:
      case 2:
      case 3: return Plain{};
      case 4:
      case 5: return number(0, 2) == 0 ? LockKind(Writer{}) : LockKind(Reader{});
      case 6:
      case 7: return Permits{2};
      case 8: return StringLock{};
      default: return number(0, 1) == 0 ? LockKind(Plain{}) : LockKind(Writer{});
    }
  }

  ClientPlan client(int which, const LockKind& kind, Millis ttl)
  {
    const bool waits_for_ever = number(0, 3) != 0;
    return {.number = which,
            .kind = kind,
            .clock_rate = 1 + number(-100, 100) / 10'000.0,
            .runs = number(1, 4),
            .starts = time(Millis{0}, number(0, 1) == 0 ? Millis{5} : ttl),
            .pause = time(Millis{0}, number(0, 1) == 0 ? Millis{20} : ttl),
            .job_lasts = one_of<Millis>({Millis{1}, Millis{20}, ttl / 4, ttl / 2, ttl + ttl / 5, ttl * 2}),
            .ignores_term = number(0, 4) == 0,
            .wait = waits_for_ever ? std::nullopt : std::optional{time(Millis{0}, ttl * 2)},
            .automatic = number(0, 4) != 0,
            .min_hold = m_later.one_in(5) ? Millis{m_later.up_to(ttl.count())} : Millis{0},
            .nests = m_later.one_in(5)};
  }

  // In some schedules, so that the others stay as they are.
  void add_concurrency_options(std::vector<ClientPlan>& clients) const
  {
    SeededRng rng(m_seed * 104'729 + 3);
    if (!rng.one_in(4)) {
      return;
    }
    for (ClientPlan& plan : clients) {
      plan.latest = rng.one_in(2);
      plan.cancels = rng.one_in(3) && !std::holds_alternative<Permits>(plan.kind);
    }
  }

  // In some schedules, so that the others stay as they are. Those about silent waiters need all of their line.
  void add_line_options(Schedule& schedule) const
  {
    constexpr std::array priorities{-100, -1, 0, 0, 1, 100};
    SeededRng rng(m_seed * 86'028'121 + 8);
    if (schedule.stops_only_waiters || !rng.one_in(4)) {
      return;
    }
    for (ClientPlan& plan : schedule.clients) {
      plan.priority = plan.freezes ? 0 : priorities[below(rng, priorities.size())];
      plan.max_waiting = rng.one_in(2) && !plan.freezes ? 1 + static_cast<unsigned>(rng.up_to(2)) : 0;
    }
  }

  // In some schedules with a kind that rlock freeze knows.
  void add_freezes(std::vector<ClientPlan>& clients) const
  {
    SeededRng rng(m_seed * 32'452'843 + 6);
    if (!rng.one_in(3)) {
      return;
    }
    for (ClientPlan& plan : clients) {
      plan.freezes = rng.one_in(3) && !plan.latest && !plan.cancels && !kind_of(plan.kind).is_shared;
    }
  }

  // In some of the schedules without faults: a line whose machines, but those of the first client and of some others, stand
  // still for longer than all that their silence may cost the others, or die. In some of these the first client dies with the lock;
  // in some the others come at the time of its release.
  void freeze_machines(Schedule& schedule) const
  {
    SeededRng rng(m_seed * 15'485'863 + 4);
    SeededRng late(m_seed * 49'979'687 + 7);  // for what was added later
    if (!schedule.faults.empty() || rng.one_in(3)) {
      return;
    }
    const Millis frozen_at{500};
    const FaultKind kind = late.one_in(3) ? FaultKind::kill_both : FaultKind::stop_both;
    const bool others_come_late = late.one_in(2);
    for (ClientPlan& plan : schedule.clients) {
      plan.starts = Millis{plan.number * 20};
      plan.job_lasts = plan.number == 0 ? frozen_at + Millis{rng.up_to(100)} : plan.job_lasts;
      plan.wait.reset();
      plan.nests = false;  // a nested rlock that dies with its job would leave the lock to its ttl
      if (plan.number > 0 && !rng.one_in(3)) {
        schedule.faults.push_back({.kind = kind,
                                   .client = plan.number,
                                   .at = frozen_at,
                                   .lasts = schedule.ttl * 2 + Millis{10'000},
                                   .amount = Millis{0}});
      } else if (plan.number > 0 && others_come_late) {
        plan.starts = schedule.clients.front().job_lasts + Millis{late.up_to(4 * schedule.latency.count())};
      }
    }
    if (rng.one_in(3)) {
      schedule.faults.push_back({.kind = FaultKind::kill_both,
                                 .client = 0,
                                 .at = frozen_at - Millis{rng.up_to(400)},
                                 .lasts = Millis{0},
                                 .amount = Millis{0}});
    }
    // The job of the first client must not end before the machines stop: else a machine stops that has the lock. A machine that dies
    // or stands still must not share the lock with it, because then the lock is held until the ttl of that machine ends.
    const bool holds_with_first = kind_of(schedule.clients.front().kind).is_shared;
    schedule.stops_only_waiters =
        schedule.clients.front().automatic && !holds_with_first &&
        std::ranges::none_of(schedule.clients, &ClientPlan::cancels) &&
        std::ranges::none_of(schedule.faults, [](const Fault& each) { return each.client == 0; });
  }

  Fault force(int clients, Millis during, Millis ttl)
  {
    return {.kind = FaultKind::force,
            .client = static_cast<int>(m_later.up_to(clients - 1)),
            .at = Millis{m_later.up_to(during.count())},
            .lasts = Millis{1 + m_later.up_to(ttl.count())},
            .amount = Millis{0}};
  }

  Kinds kinds_of_faults()
  {
    const std::vector<std::vector<Kinds>> mixes{{},
                                                {crashes},
                                                {crashes},
                                                {pauses, crashes},
                                                {network},
                                                {network, harmless},
                                                {pauses, crashes, network, harmless},
                                                {pauses, crashes, network, harmless},
                                                {losses},
                                                {pauses, crashes, network, harmless, losses}};
    Kinds all;
    for (const Kinds& some : mixes[static_cast<std::size_t>(number(0, 9))]) {
      all.insert(all.end(), some.begin(), some.end());
    }
    return all;
  }

  Fault fault(FaultKind kind, int clients, Millis during, Millis ttl)
  {
    const bool is_servers =
        std::count(harmless.begin(), harmless.end(), kind) + std::count(losses.begin(), losses.end(), kind) > 0;
    Fault one{.kind = kind,
              .client = is_servers ? -1 : number(0, clients - 1),
              .at = time(Millis{0}, during),
              .lasts = time(Millis{1}, number(0, 1) == 0 ? ttl / 3 : ttl * 2),
              .amount = time(Millis{1}, ttl / 2)};
    if (kind == FaultKind::step_clock) {
      one.amount = time(-2 * ttl, 2 * ttl);
    }
    return one;
  }

  std::uint64_t m_seed;
  SeededRng m_rng;
  SeededRng m_later;  // for what was added later, so that the seeds keep their schedules
};

// Three servers that agree lose no write, and have no clock of their own: another fault comes in the place of one that they cannot
// have. Sessions have more faults, and the clocks of the machines are wrong.
class SessionFaults {
 public:
  explicit SessionFaults(std::uint64_t seed) : m_rng(seed * 86'028'121 + 5) {}

  void add_to(Schedule& schedule)
  {
    for (Fault& fault : schedule.faults) {
      replace(fault, schedule);
    }
    for (ClientPlan& plan : schedule.clients) {
      plan.wall_ahead = wrong_clock();
    }
    if (schedule.stops_only_waiters || m_rng.one_in(3)) {
      return;
    }
    const Nanos count = 1 + m_rng.up_to(5);
    for (Nanos i = 0; i < count; ++i) {
      schedule.faults.push_back(member_fault(schedule));
    }
    std::ranges::stable_sort(schedule.faults, {}, &Fault::at);
  }

 private:
  Millis up_to(Millis most) { return Millis{1 + m_rng.up_to(most.count() - 1)}; }
  Millis wrong_clock() { return m_rng.one_in(2) ? Millis{0} : Millis{m_rng.up_to(4000) - 2000}; }
  int any_client(const Schedule& schedule)
  {
    return static_cast<int>(m_rng.up_to(static_cast<Nanos>(schedule.clients.size()) - 1));
  }
  void replace(Fault& fault, const Schedule& schedule)
  {
    if (fault.kind == FaultKind::fail_over) {
      fault.kind = m_rng.one_in(2) ? FaultKind::stop_leader : FaultKind::cut_off_member;
    } else if (fault.kind == FaultKind::step_clock) {
      fault.kind = FaultKind::step_wall_clock;
      fault.client = any_client(schedule);
    }
  }
  Fault member_fault(const Schedule& schedule)
  {
    const Millis during = std::max(Millis{2000}, schedule.ttl * 3);
    return {.kind = m_rng.one_in(2) ? FaultKind::stop_leader : FaultKind::cut_off_member,
            .client = -1,
            .at = up_to(during),
            .lasts = up_to(m_rng.one_in(2) ? schedule.ttl / 3 : schedule.ttl * 2),
            .amount = up_to(m_rng.one_in(2) ? schedule.ttl / 10 : schedule.ttl)};
  }

  SeededRng m_rng;
};

std::string show_mode(const LockKind& kind)
{
  constexpr std::array shown{"plain", "reader", "writer", "permits of 2", "string"};
  return shown[kind.index()];
}

std::string ms(Millis time) { return std::to_string(time.count()) + " ms"; }

const char* show_store(StoreKind store)
{
  constexpr std::array shown{"", ", on records", ", on records with sessions"};
  return shown[static_cast<std::size_t>(store)];
}

bool lasts(FaultKind kind)
{
  switch (kind) {
    case FaultKind::kill_runner:
    case FaultKind::kill_guardian:
    case FaultKind::kill_both:
    case FaultKind::reset:
    case FaultKind::step_clock:
    case FaultKind::step_wall_clock:
    case FaultKind::delete_lock:
    case FaultKind::forget_scripts: return false;
    default: return true;
  }
}

}  // namespace

Schedule schedule_of(std::uint64_t seed, StoreKind store)
{
  Schedule schedule = Maker(seed).make();
  schedule.store = store;
  if (store == StoreKind::sessions) {
    SessionFaults(seed).add_to(schedule);
  }
  return schedule;
}

bool loses_data(FaultKind kind) { return std::count(losses.begin(), losses.end(), kind) > 0; }

Millis end_of(const Fault& fault)
{
  const Millis more = fault.kind == FaultKind::stop_leader ? fault.amount : Millis{0};
  return fault.at + (lasts(fault.kind) ? fault.lasts + more : Millis{0});
}

Millis calm_from(const Schedule& schedule)
{
  Millis calm{0};
  for (const Fault& fault : schedule.faults) {
    calm = std::max(calm, end_of(fault));
  }
  return calm;
}

// A script on a record takes a read and a commit, and again after a conflict.
Millis time_of_messages(const Schedule& schedule)
{
  return schedule.store == StoreKind::redis ? 60 * schedule.latency : Millis{200} + 240 * schedule.latency;
}

std::string show(const Fault& fault)
{
  std::string text = "at " + ms(fault.at) + ": " + names[static_cast<std::size_t>(fault.kind)];
  text += fault.client >= 0 ? " of client " + std::to_string(fault.client) : "";
  text += lasts(fault.kind) ? ", for " + ms(fault.lasts) : "";
  const bool has_amount = fault.kind == FaultKind::slow_down || fault.kind == FaultKind::fail_over ||
                          fault.kind == FaultKind::step_clock || fault.kind == FaultKind::stop_leader ||
                          fault.kind == FaultKind::step_wall_clock;
  return text + (has_amount ? ", by " + ms(fault.amount) : "");
}

std::string show(const Schedule& schedule)
{
  std::string text = "seed " + std::to_string(schedule.seed) + ": ttl " + ms(schedule.ttl) + ", server timeout " +
                     ms(schedule.server_timeout) + ", latency " + ms(schedule.latency) + show_store(schedule.store) +
                     "\n";
  for (const ClientPlan& plan : schedule.clients) {
    text += "  client " + std::to_string(plan.number) + ": " + show_mode(plan.kind) + ", " + std::to_string(plan.runs) +
            " runs from " + ms(plan.starts) + ", " + ms(plan.pause) + " apart, jobs of " + ms(plan.job_lasts) +
            (plan.ignores_term ? " that ignore TERM" : "") + (plan.wait ? ", waits " + ms(*plan.wait) : "") +
            (plan.automatic ? "" : ", fixed lease") + (plan.nests ? ", nested rlock" : "") +
            (plan.latest ? ", latest" : "") +
            (plan.priority != 0 ? ", priority " + std::to_string(plan.priority) : "") +
            (plan.max_waiting > 0 ? ", max-waiting " + std::to_string(plan.max_waiting) : "") +
            (plan.cancels ? ", cancels" : "") + (plan.freezes ? ", freezes" : "") +
            (plan.min_hold > Millis{0} ? ", min-hold " + ms(plan.min_hold) : "") +
            (plan.wall_ahead != Millis{0} ? ", clock ahead by " + ms(plan.wall_ahead) : "") + ", clock rate " +
            std::to_string(plan.clock_rate) + "\n";
  }
  for (const Fault& fault : schedule.faults) {
    text += "  " + show(fault) + "\n";
  }
  return text;
}

}  // namespace rlock::sim
