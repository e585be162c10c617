// SPDX-License-Identifier: Apache-2.0
#include "sim/simulation.h"

#include "run/acquire_all.h"
#include "run/request_policy.h"
#include "run/supervision.h"
#include "server/url.h"
#include "sim/network.h"
#include "sim/rules.h"

#include <algorithm>
#include <csignal>
#include <cstdio>

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

namespace rlock::sim {
namespace {

// The runs block signals, as rlock does; the program that simulates gets its mask back.
class SignalMask {
 public:
  SignalMask() { ::sigprocmask(SIG_SETMASK, nullptr, &m_before); }
  ~SignalMask() { ::sigprocmask(SIG_SETMASK, &m_before, nullptr); }
  SignalMask(const SignalMask&) = delete;
  SignalMask& operator=(const SignalMask&) = delete;

 private:
  sigset_t m_before{};
};

// The runs say why they end.
class SilentStderr {
 public:
  SilentStderr() : m_before(::dup(STDERR_FILENO))
  {
    const Fd nothing(::open("/dev/null", O_WRONLY | O_CLOEXEC));
    ::dup2(nothing.get(), STDERR_FILENO);
  }
  ~SilentStderr() { ::dup2(m_before.get(), STDERR_FILENO); }
  SilentStderr(const SilentStderr&) = delete;
  SilentStderr& operator=(const SilentStderr&) = delete;

 private:
  Fd m_before;
};

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

class Simulation {
 public:
  Simulation(const Schedule& schedule, std::filesystem::path socket, const std::vector<Replacement>& changed)
      : m_schedule(schedule),
        m_socket(std::move(socket)),
        m_world(schedule.seed),
        m_network(m_world, new_server(changed), m_socket, clients(), schedule.seed),
        m_rules(schedule, m_world, the_server(), [this](const std::string& line) { note(line); })
  {
    m_network.longest_latency = nanos(schedule.latency);
    m_network.before_request = [this](const Words& request) { m_rules.before_request(request); };
    m_network.after_request = [this](int client, const Words& request, const Value& answer) {
      m_rules.after_request(client, request, answer);
    };
    m_world.after_run = [this](Process& process) { m_network.read_from(process); };
    set_job_hooks({.behavior = [this](int client) { return behavior_of(client); },
                   .prepared = [this](VirtualJob& job) { client(job.client).jobs.push_back(&job); },
                   .began = [this](VirtualJob& job) { job_began(job); },
                   .died = [this](VirtualJob& job) { m_rules.job_died(job); }});
    for (const ClientPlan& plan : schedule.clients) {
      m_clients.push_back(std::make_unique<Client>(plan));
      plan_run(*m_clients.back(), plan.starts);
    }
    for (const Fault& fault : schedule.faults) {
      m_world.at(nanos(fault.at), [this, &fault] { begin(fault); });
      if (fault.kind == FaultKind::fail_over) {
        m_world.at(nanos(fault.at - fault.amount), [] { the_server().remember_data(); });
      }
    }
  }

  SimulationResult run()
  {
    try {
      go_on(last_moment());
    } catch (const std::logic_error& found) {
      m_result.broken = found.what();
    }
    if (m_rules.broken()) {
      m_result.broken = m_rules.broken();
    } else if (!m_result.broken && !all_are_done()) {
      m_result.broken = "runs are left long after the last fault:" + unfinished();
    }
    return std::move(m_result);
  }

 private:
  void go_on(Nanos end)
  {
    while (!m_rules.broken() && !all_are_done() && m_world.now() <= end && m_world.step()) {
      ++m_result.steps;
      m_rules.check();
      free_dead_runners();
    }
  }

  struct Client {
    explicit Client(const ClientPlan& its_plan) : plan(its_plan), host(its_plan.clock_rate), runs_left(its_plan.runs) {}
    const ClientPlan& plan;
    const Host host;
    int runs_left;
    Process* runner = nullptr;      // of the run that goes on
    std::vector<VirtualJob*> jobs;  // of all its runs
  };

  // One for all schedules, because a new interpreter would compile the scripts again.
  static Server& the_server()
  {
    static Server server;
    return server;
  }
  static Server& new_server(const std::vector<Replacement>& changed)
  {
    the_server().begin_again();
    the_server().break_scripts(changed);
    return the_server();
  }

  [[nodiscard]] std::size_t clients() const
  {
    std::size_t most = 0;
    for (const ClientPlan& plan : m_schedule.clients) {
      most = std::max(most, static_cast<std::size_t>(plan.number) + 1);
    }
    return most;
  }

  Client* find_client(int number)
  {
    const auto found =
        std::find_if(m_clients.begin(), m_clients.end(), [&](const auto& each) { return each->plan.number == number; });
    return found == m_clients.end() ? nullptr : found->get();
  }
  Client& client(int number) { return *find_client(number); }
  JobBehavior behavior_of(int number)
  {
    const ClientPlan& plan = client(number).plan;
    return {.lasts = plan.job_lasts, .ignores_term = plan.ignores_term};
  }

  void note(const std::string& line)
  {
    char time[32];
    std::snprintf(time, sizeof time, "%12.6f  ", static_cast<double>(m_world.now()) / 1e9);
    m_result.story.push_back(time + line);
  }

  void job_began(VirtualJob& job)
  {
    ++m_result.jobs;
    m_rules.job_began(job);
  }

  void plan_run(Client& of, Millis in)
  {
    if (of.runs_left > 0) {
      --of.runs_left;
      ++m_runs_planned;
      m_world.after(nanos(in), [this, &of] {
        --m_runs_planned;
        m_rules.run_began(of.plan.number);
        of.runner = &m_world.start("runner", of.host, of.plan.number, [this, &of] { run_as(of); });
      });
    }
  }

  [[nodiscard]] RunRequest request_of(const ClientPlan& plan) const
  {
    RunRequest request;
    request.server.endpoints = {*parse_url("unix://" + m_socket.string())};
    request.server.timeout = m_schedule.server_timeout;
    request.names = {*LockName::parse("stock")};
    request.mode = plan.mode;
    request.ttl = m_schedule.ttl;
    request.automatic = plan.automatic;
    request.wait = plan.wait;
    request.argv = {"job"};
    return request;
  }

  // `rlock run` for one lock: run/run.cpp without what only several locks need.
  void run_as(Client& of)
  {
    const RunRequest request = request_of(of.plan);
    SeededRng rng(m_schedule.seed * 1009 + static_cast<std::uint64_t>(of.plan.number * 100 + of.runs_left));
    Signals signals;
    signals.block();
    const Log log(Verbosity::quiet);
    const RunContext context{of.host, rng, signals, log};
    std::string end;
    {
      LockSet lock_set(request, context, "/job");
      const WaitPolicy policy = wait_policy(request.wait, request.server.timeout, of.host);
      const auto acquired = acquire_all(request, context, policy, lock_set);
      const bool has_lock = acquired && std::holds_alternative<AllAcquired>(*acquired);
      end = has_lock ? text_of(supervise(request, context, lock_set)) : text_of(acquired);
    }
    m_rules.run_ended(of.plan.number, end);
    of.runner = nullptr;
    plan_run(of, of.plan.pause);
  }

  [[nodiscard]] bool all_are_done() const
  {
    return m_runs_planned == 0 && m_dead_runners.empty() &&
           std::all_of(m_clients.begin(), m_clients.end(), [](const auto& each) { return each->runner == nullptr; });
  }

  [[nodiscard]] std::string unfinished() const
  {
    std::string names;
    for (const auto& each : m_clients) {
      names += each->runner != nullptr ? " client " + std::to_string(each->plan.number) : "";
    }
    return names + (m_runs_planned > 0 ? " and planned ones" : "");
  }

  // By then all runs must be over: each has had its turn.
  [[nodiscard]] Nanos last_moment() const
  {
    Millis most = calm_from(m_schedule) + Millis{40'000} + m_schedule.ttl * 4;
    for (const ClientPlan& plan : m_schedule.clients) {
      most += plan.runs * (plan.job_lasts + plan.pause + Millis{1000}) + plan.starts;
    }
    for (const Fault& fault : m_schedule.faults) {
      most += fault.kind == FaultKind::step_clock ? std::chrono::abs(fault.amount) : m_schedule.ttl;
    }
    return nanos(most);
  }

  [[nodiscard]] static bool has_guardian(const VirtualJob& job) { return !World::current().has_ended(*job.guardian); }
  static VirtualJob* guarded_job(Client& of)
  {
    const auto found =
        std::find_if(of.jobs.rbegin(), of.jobs.rend(), [](const auto* job) { return has_guardian(*job); });
    return found == of.jobs.rend() ? nullptr : *found;
  }

  void kill_runner(Client& of)
  {
    Process* const runner = of.runner;
    if (runner == nullptr) {
      return;
    }
    m_world.kill(*runner);
    m_network.process_died(*runner);
    for (const VirtualJob* job : of.jobs) {
      if (job->runner == runner && has_guardian(*job) && job->runners_end >= 0) {
        ::shutdown(job->runners_end, SHUT_RDWR);
      }
    }
    of.runner = nullptr;
    m_dead_runners.push_back(runner);
    m_rules.run_ended(of.plan.number, "killed");
    plan_run(of, of.plan.pause);
  }

  static void kill_guardian_of(Client& of, Network& network)
  {
    if (VirtualJob* const job = guarded_job(of)) {
      network.process_died(*job->guardian);
      kill_guardian(*job);
    }
  }

  // The guardian uses a copy of the runner's memory; here it uses that memory itself.
  void free_dead_runners()
  {
    std::erase_if(m_dead_runners, [this](Process* runner) {
      const auto uses_it = [&](const VirtualJob* job) {
        return job->runner == runner && (has_guardian(*job) || job->is_alive);
      };
      const Client& of = client(runner->client);
      const bool is_free = std::none_of(of.jobs.begin(), of.jobs.end(), uses_it);
      if (is_free) {
        m_world.unwind(*runner);
      }
      return is_free;
    });
  }

  static void stop(Process* process, const Fault& fault)
  {
    if (process != nullptr) {
      process->is_stopped = true;
      World::current().after(nanos(fault.lasts), [process] { process->is_stopped = false; });
    }
  }

  void begin(const Fault& fault)
  {
    Client* const of = find_client(fault.client);
    if (fault.client >= 0 && of == nullptr) {
      return;
    }
    ++m_result.faults;
    m_rules.fault_began(fault);
    const Nanos until = m_world.now() + nanos(fault.lasts);
    VirtualJob* const job = of != nullptr ? guarded_job(*of) : nullptr;
    switch (fault.kind) {
      case FaultKind::stop_runner: return stop(of->runner, fault);
      case FaultKind::stop_guardian: return stop(job != nullptr ? job->guardian : nullptr, fault);
      case FaultKind::stop_both: stop(of->runner, fault); return stop(job != nullptr ? job->guardian : nullptr, fault);
      case FaultKind::kill_runner: return kill_runner(*of);
      case FaultKind::kill_guardian: return kill_guardian_of(*of, m_network);
      case FaultKind::kill_both: kill_guardian_of(*of, m_network); return kill_runner(*of);
      case FaultKind::cut_off: m_network.link(fault.client).cut_off_until = until; return;
      case FaultKind::lose_requests: m_network.link(fault.client).loses_requests_until = until; return;
      case FaultKind::lose_answers: m_network.link(fault.client).loses_answers_until = until; return;
      case FaultKind::slow_down:
        m_network.link(fault.client).slow_until = until;
        m_network.link(fault.client).slow_by = nanos(fault.amount);
        return;
      case FaultKind::reset: return m_network.cut_connections(fault.client);
      default: return begin_on_server(fault);
    }
  }

  void begin_on_server(const Fault& fault)
  {
    switch (fault.kind) {
      case FaultKind::step_clock: return the_server().step_clock(fault.amount);
      case FaultKind::delete_lock: the_server().execute({"DEL", "stock"}); return;
      case FaultKind::forget_scripts: return the_server().forget_scripts();
      case FaultKind::lose_all_data: the_server().forget_data(); break;
      case FaultKind::fail_over: the_server().return_to_remembered_data(); break;
      default: break;
    }
    the_server().forget_scripts();
    m_network.stop_server();
    m_server_up_at = std::max(m_server_up_at, m_world.now() + nanos(fault.lasts));
    m_world.at(m_server_up_at, [this] {
      if (!m_network.is_up() && m_world.now() >= m_server_up_at) {
        m_network.start_server();
      }
    });
  }

  const SignalMask m_signal_mask;
  const Schedule& m_schedule;
  const std::filesystem::path m_socket;
  SimulationResult m_result;
  std::vector<std::unique_ptr<Client>> m_clients;  // outlives the world, whose end frees what its fibers own
  World m_world;
  Network m_network;
  Rules m_rules;
  std::vector<Process*> m_dead_runners;
  int m_runs_planned = 0;
  Nanos m_server_up_at = 0;
};

}  // namespace

SimulationResult simulate(const Schedule& schedule, const std::filesystem::path& directory,
                          const std::vector<Replacement>& changed)
{
  const SilentStderr silent;
  return Simulation(schedule, directory / "redis.sock", changed).run();
}

}  // namespace rlock::sim
