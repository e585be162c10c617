// SPDX-License-Identifier: Apache-2.0
#include "sim/simulation.h"

#include "sim/client.h"
#include "sim/injector.h"
#include "sim/limits.h"
#include "sim/network.h"
#include "sim/rules.h"

#include <algorithm>
#include <csignal>
#include <cstdio>

#include <fcntl.h>
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

class Simulation {
 public:
  Simulation(const Schedule& schedule, std::filesystem::path socket, const std::vector<Replacement>& changed,
             RecordMistake mistake)
      : m_schedule(schedule),
        m_socket(std::move(socket)),
        m_world(schedule.seed),
        m_network(m_world, new_server(changed), m_socket, clients(), schedule.seed),
        m_rules(schedule, m_world, the_server(), [this](const std::string& line) { note(line); }),
        m_injector(m_world, m_network, the_server(),
                   {.runner_killed = [this](Client& of) { runner_killed(of); },
                    .force = [this](const Client& of, const VirtualJob& job, Millis grace) { force(of, job, grace); }})
  {
    if (schedule.store != StoreKind::redis) {
      Records::add_engine();
      m_records.emplace(m_world, m_network, the_server(), schedule, mistake);
    }
    m_network.longest_latency = nanos(schedule.latency);
    m_network.before_request = [this](const Words& request) { m_rules.before_request(request); };
    m_network.after_request = [this](int client, const Words& request, const Reply& answer) {
      m_rules.after_request(client, request, answer);
    };
    m_world.after_run = [this](Process& process) { m_network.read_from(process); };
    set_job_hooks({.behavior = [this](const Process& runner) { return behavior_of(runner); },
                   .prepared = [this](VirtualJob& job) { client(job.client).jobs.push_back(&job); },
                   .began = [this](VirtualJob& job) { job_began(job); },
                   .died = [this](VirtualJob& job) { job_died(job); }});
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
      go_on(last_moment(m_schedule));
    } catch (const std::logic_error& found) {
      m_result.broken = found.what();
    }
    if (m_rules.broken()) {
      m_result.broken = m_rules.broken();
    } else if (!m_result.broken && !all_are_done()) {
      m_result.broken = "runs are left long after the last fault:" + unfinished();
    }
    m_result.conflicts = m_records ? m_records->conflicts() : 0;
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
  JobBehavior behavior_of(const Process& runner)
  {
    const ClientPlan& plan = client(runner.client).plan;
    return {.lasts = plan.job_lasts / (is_nested(runner) ? 2 : 1), .ignores_term = plan.ignores_term};
  }
  bool is_nested(const Process& runner) { return client(runner.client).nested == &runner; }

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
    Client& of = client(job.client);
    if (of.plan.nests && of.runner == job.runner) {
      of.nested = &m_world.start("nested", of.host, job.client, [this, &of, &job] { run_nested(of, job); });
    }
  }

  void run_nested(Client& of, const VirtualJob& outer)
  {
    const std::string end = run_rlock(of, outer.environment, m_schedule, m_socket);
    if (!Fiber::running()->process.is_dead) {
      note("the rlock of the job of client " + std::to_string(of.plan.number) + " ends: " + end);
      of.nested = nullptr;
    }
  }

  // What a job has started in its process group dies with it.
  void job_died(VirtualJob& job)
  {
    m_rules.job_died(job);
    Client& of = client(job.client);
    if (of.nested != nullptr && of.nested != job.runner) {
      m_injector.kill(of, *of.nested);
      m_dead_runners.push_back(std::exchange(of.nested, nullptr));
    }
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

  void run_as(Client& of)
  {
    const std::string end = run_rlock(of, {}, m_schedule, m_socket);
    if (Fiber::running()->process.is_dead) {
      return;  // the simulation ends: the rules are gone
    }
    m_rules.run_ended(of.plan.number, end);
    of.runner = nullptr;
    plan_run(of, of.plan.pause);
  }

  void runner_killed(Client& of)
  {
    m_dead_runners.push_back(std::exchange(of.runner, nullptr));
    m_rules.run_ended(of.plan.number, "killed");
    plan_run(of, of.plan.pause);
  }

  void force(const Client& of, const VirtualJob& job, Millis grace)
  {
    ++m_operators;
    m_world.start("operator", of.host, of.plan.number, [this, &of, &job, grace] {
      const std::string end = force_unlock_job(of, job, grace, m_schedule, m_socket);
      if (!Fiber::running()->process.is_dead) {
        --m_operators;
        note("the operator ends: " + end);
      }
    });
  }

  [[nodiscard]] bool all_are_done() const
  {
    return m_runs_planned == 0 && m_operators == 0 && m_dead_runners.empty() &&
           std::all_of(m_clients.begin(), m_clients.end(),
                       [](const auto& each) { return each->runner == nullptr && each->nested == nullptr; });
  }

  [[nodiscard]] std::string unfinished() const
  {
    std::string names;
    for (const auto& each : m_clients) {
      names += each->runner != nullptr || each->nested != nullptr ? " client " + std::to_string(each->plan.number) : "";
    }
    names += m_operators > 0 ? " an operator" : "";
    return names + (m_runs_planned > 0 ? " and planned ones" : "");
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

  void begin(const Fault& fault)
  {
    Client* const of = find_client(fault.client);
    if (fault.client >= 0 && of == nullptr) {
      return;
    }
    ++m_result.faults;
    m_rules.fault_began(fault);
    m_injector.begin(fault, of);
  }

  const SignalMask m_signal_mask;
  const Schedule& m_schedule;
  const std::filesystem::path m_socket;
  SimulationResult m_result;
  std::vector<std::unique_ptr<Client>> m_clients;  // outlives the world, whose end frees what its fibers own
  World m_world;
  Network m_network;
  std::optional<Records> m_records;
  Rules m_rules;
  std::vector<Process*> m_dead_runners;
  Injector m_injector;
  int m_runs_planned = 0;
  int m_operators = 0;
};

}  // namespace

SimulationResult simulate(const Schedule& schedule, const std::filesystem::path& directory,
                          const std::vector<Replacement>& changed, RecordMistake mistake)
{
  const SilentStderr silent;
  return Simulation(schedule, directory / "redis.sock", changed, mistake).run();
}

}  // namespace rlock::sim
