// SPDX-License-Identifier: Apache-2.0
#include "sim/client.h"

#include "redis/url.h"
#include "run/acquire_all.h"
#include "run/force.h"
#include "run/run.h"
#include "run/supervision.h"
#include "sim/records.h"

#include <algorithm>
#include <array>

namespace rlock::sim {
namespace {

std::string text_of(const RunEnd& end)
{
  const auto* exit = std::get_if<ExitWith>(&end);
  return exit != nullptr ? "exit " + std::to_string(exit->code)
                         : "signal " + std::to_string(std::get<DieOf>(end).signal);
}

std::string text_of(const Result<AcquireAllResult>& result)
{
  if (!result) {
    return "no lock: " + result.error().text;
  }
  return std::holds_alternative<LockBusy>(*result) ? "busy" : "not acquired";
}

std::string text_of(const Result<ForceEnd>& end)
{
  constexpr std::array words{"released by the holder", "revoked and expired", "broken", "free",
                             "changed hands",          "still stopping"};
  return end ? words[end->index()] : end.error().text;
}

ServerSpec server_of(const Schedule& schedule, const std::filesystem::path& socket)
{
  ServerSpec server;
  if (schedule.store != StoreKind::redis) {
    Endpoint endpoint;
    endpoint.scheme = Records::scheme;
    endpoint.kind = Endpoint::Kind::other;
    server.endpoints = {endpoint};
  } else {
    server.endpoints = {*parse_url("unix://" + socket.string())};
  }
  server.timeout = schedule.server_timeout;
  return server;
}

RunRequest request_of(const ClientPlan& plan, const Schedule& schedule, const std::filesystem::path& socket)
{
  RunRequest request;
  request.server = server_of(schedule, socket);
  request.names = {*LockName::parse("stock")};
  request.kind = plan.kind;
  request.ttl = schedule.ttl;
  request.automatic = plan.automatic;
  request.wait = plan.wait;
  request.min_hold = plan.min_hold;
  request.latest = plan.latest;
  request.priority = plan.priority;
  request.max_waiting = plan.max_waiting > 0 ? std::optional(plan.max_waiting) : std::nullopt;
  request.cancel_in_progress = plan.cancels;
  request.argv = {"job"};
  return request;
}

// The run asks for its lock as rlock freeze does. It has a job all the same, because the rules look at jobs.
void wait_as_freeze(LockSet& lock_set, const RunRequest& request, const RunContext& context)
{
  LockSpec spec = lock_set.sessions.front().spec();
  spec.who.freeze = "moving";
  const Owner owner = lock_set.sessions.front().hold().owner;
  lock_set.sessions.clear();
  lock_set.sessions.emplace_back(request, context, lock_set.store, std::vector{spec}, owner);
}

}  // namespace

bool has_guardian(const VirtualJob& job) { return !World::current().has_ended(*job.guardian); }

VirtualJob* guarded_job(const Client& of)
{
  const auto found = std::find_if(of.jobs.rbegin(), of.jobs.rend(), [](const auto* job) { return has_guardian(*job); });
  return found == of.jobs.rend() ? nullptr : *found;
}

// run/run.cpp without what only several locks need.
std::string run_rlock(const Client& as, const std::vector<std::string>& environment, const Schedule& schedule,
                      const std::filesystem::path& socket)
{
  RunRequest request = request_of(as.plan, schedule, socket);
  request.environment = environment;
  const int which = as.plan.number * 100 + as.runs_left + (environment.empty() ? 0 : 50);
  SeededRng rng(schedule.seed * 1009 + static_cast<std::uint64_t>(which));
  Signals signals;
  signals.block();
  const Log log(Verbosity::quiet);
  const RunContext context{as.host, rng, signals, log};
  LockSet lock_set(request, context, "/job");
  if (as.plan.freezes && environment.empty()) {
    wait_as_freeze(lock_set, request, context);
  }
  const WaitPolicy policy = wait_policy(request.wait, request.server.timeout, as.host);
  const auto acquired = acquire_all(request, context, policy, signals.stop(), lock_set);
  const bool has_lock = acquired && std::holds_alternative<AllAcquired>(*acquired);
  return has_lock ? text_of(supervise(request, context, lock_set).end) : text_of(acquired);
}

std::string force_unlock_job(const Client& of, const VirtualJob& job, Millis grace, const Schedule& schedule,
                             const std::filesystem::path& socket)
{
  const auto store = open_store(server_of(schedule, socket), of.host, StopToken::never());
  if (!store) {
    return "no server";
  }
  const ForceUnlockRequest order{.name = *LockName::parse("stock"),
                                 .kind = of.plan.kind,
                                 .owner = Owner::of(job.owner),
                                 .by = "an operator",
                                 .grace = grace,
                                 .server_timeout = schedule.server_timeout,
                                 .revoked = {}};
  return text_of(force_unlock(**store, order, of.host, StopToken::never()));
}

}  // namespace rlock::sim
