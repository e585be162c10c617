// SPDX-License-Identifier: Apache-2.0
// What must be true in every simulation, whatever the schedule (the promises of rlock(7)):
//
//   exclusion   two jobs that exclude each other are never alive together, and no job without its lock on the server
//   loss        where the server lost its data or its clock was set ahead they may overlap: the earlier one asks the server
//               within time_to_ask(), is told (exit 121) and dead within `told_and_dead`, and has the smaller fence
//   expiry      no job lives to the end of its lease, as its host counts it, and no host counts on more than the server does
//   min-hold    no job begins while --min-hold keeps the lock
//   fence       grows with every job that excludes the one before
//   ttl         every key has one, but the two keys of permits
//   queue       the lock goes to the caller or to a waiter that listens or has just come; a waiter that listens is not passed
//               over; a renewal creates no lock
//   latest      of the waiters with --latest one is in the queue
//   priority    a waiter joins behind those with its priority or a greater one, and in front of the others
//   line        a caller with --max-waiting joins no more waiters that listen than it allows
//   progress    while runs wait, the lock is not idle for longer than idle_limit()
#pragma once

#include "sim/lock_state.h"
#include "sim/queue_rules.h"
#include "sim/schedule.h"
#include "sim/server.h"
#include "sim/virtual_job.h"

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace rlock::sim {

class Rules {
 public:
  // All must outlive it. `note`: writes a line of the story.
  Rules(const Schedule& schedule, World& world, Server& server, std::function<void(const std::string&)> note);

  void fault_began(const Fault& fault);
  void run_began(int client);
  void run_ended(int client, const std::string& end);
  void job_began(VirtualJob& job);
  void job_died(VirtualJob& job);
  void before_request(const Words& request);
  void after_request(int client, const Words& request, const Reply& answer);
  void check();  // after each step

  [[nodiscard]] const std::optional<std::string>& broken() const { return m_broken; }

 private:
  struct Overlap {
    VirtualJob* earlier;
    Nanos since;
    bool is_over = false;
  };
  void fail(const std::string& text);
  [[nodiscard]] const ClientPlan& plan_of(const VirtualJob& job) const;
  [[nodiscard]] const LockKind& mode_of(const VirtualJob& job) const { return plan_of(job).kind; }
  [[nodiscard]] bool exclude(const VirtualJob& one, const VirtualJob& other) const;
  [[nodiscard]] bool may_be_lost(const VirtualJob& job) const;
  [[nodiscard]] bool is_disturbed(int client, Nanos since) const;
  void check_hold(const VirtualJob& job);
  void check_told();
  [[nodiscard]] Nanos time_to_ask() const;
  void after_script(const std::string& script, const Words& request, const Reply& answer);
  void check_fence(const VirtualJob& job);
  void check_min_hold(const VirtualJob& job);
  void note_min_hold(const VirtualJob& job);
  void check_idle();

  const Schedule& m_schedule;
  World& m_world;
  const std::function<void(const std::string&)> m_note;
  LockState m_state;
  QueueRules m_queue;
  std::optional<std::string> m_broken;

  std::vector<VirtualJob*> m_alive;
  std::vector<Overlap> m_overlaps;
  std::set<std::string> m_told;          // the owners whose renewals were answered with `lost`
  std::map<int, Nanos> m_waiting;        // the clients that wait for the lock, and since when
  std::vector<Nanos> m_disturbed_until;  // by the number of the client
  Nanos m_lost_at = -1;                  // when the server last lost data or ended leases early
  bool m_number_is_lost = false;         // of the last fence, and the clock that would give a greater one
  bool m_has_hit_holder = false;         // by a fault
  bool m_is_forced = false;
  Nanos m_kept_until = 0;          // by --min-hold
  Nanos m_idle_since = 0;          // no job is alive, and a run waits
  std::uint64_t m_last_fence = 0;  // of an exclusive job
};

}  // namespace rlock::sim
