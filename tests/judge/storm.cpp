// SPDX-License-Identifier: Apache-2.0
#include "judge/storm.h"

#include "judge/leftovers.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <fstream>
#include <thread>
#include <utility>

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace rlock::judge {
namespace {

constexpr Millis tick{3};
constexpr std::size_t most_at_once = 40;
constexpr Millis pause_of_patient{900};
constexpr int line_length = 11;
constexpr Millis pause_in_line{200};
constexpr Millis first_in_line{2500};  // its job; a waiter tells only after a second that it is in line
constexpr Millis pause_of_operators{5000};
constexpr int found_free = 1;  // the exit code of force-unlock

Millis random_pause(Rng& rng, Millis average)
{
  return Millis(static_cast<std::int64_t>(below(rng, 2 * static_cast<std::uint64_t>(average.count()) + 1)));
}

void add(std::vector<SentSignal>& signals, const std::vector<SentSignal>& more)
{
  signals.insert(signals.end(), more.begin(), more.end());
}

}  // namespace

Storm::Storm(StormOptions options)
    : m_options(std::move(options)), m_rng(m_options.seed), m_rng_of_freezes(m_options.seed + 2)
{
}

void Storm::rage(Millis time)
{
  const Instant end = m_clock.now() + time;
  m_next_operation = m_clock.now() + pause_of_operators;
  for (Instant now = m_clock.now(); now < end; now = m_clock.now()) {
    if (m_options.frozen != nullptr) {
      m_options.frozen->go_on(now, m_rng_of_freezes);
    }
    start_due(now);
    look_at_all(now);
    std::this_thread::sleep_for(tick);
  }
}

void Storm::calm(Millis timeout)
{
  if (m_options.frozen != nullptr) {
    m_options.frozen->end();
  }
  for (Active& active : m_active) {
    if (active.fault) {
      add(active.record.signals, active.fault->make_up());
    }
  }
  for (EndedRun& ended : m_ended_runs) {
    add(ended.record.signals, ended.fault.make_up());
  }
  const Instant end = m_clock.now() + timeout;
  for (Instant now = m_clock.now(); now < end && !(m_active.empty() && m_operating.empty()); now = m_clock.now()) {
    look_at_all(now);
    std::this_thread::sleep_for(tick);
  }
  count_faults();
  // A job may have outlived its rlock.
  for (RunRecord& run : m_records) {
    run.evidence = {};
    EvidenceFile(evidence_path(run.id)).read_on(run.evidence);
    run.evidence.last = std::max(run.evidence.last, m_seen[run.id]);
  }
}

void Storm::count_faults()
{
  for (const Active& active : m_active) {
    if (!active.record.signals.empty()) {
      ++m_fault_counts[active.fault->plan().name()];
    }
  }
  for (const EndedRun& ended : m_ended_runs) {
    if (!ended.record.signals.empty()) {
      ++m_fault_counts[ended.fault.plan().name()];
    }
  }
}

void Storm::start_due(Instant now)
{
  if (now >= m_next_run && m_active.size() < most_at_once) {
    m_next_run = now + random_pause(m_rng, m_options.pause);
    start_burst();
  }
  start_patient(now);
  if (m_options.operators && !m_was_calm && now >= m_next_operation) {
    m_next_operation = now + random_pause(m_rng, pause_of_operators);
    operate();
  }
}

// While it is calm several wait in line, because only undisturbed waiters keep their order.
void Storm::start_patient(Instant now)
{
  if (const bool is_calm = m_options.is_calm(); std::exchange(m_was_calm, is_calm) != is_calm) {
    m_missing_in_line = is_calm ? line_length : 0;
    m_next_patient = now;
  }
  if (now < m_next_patient) {
    return;
  }
  const bool is_in_line = m_missing_in_line > 0;
  if (is_in_line || (m_active.size() < most_at_once && patient() < m_options.most_patient)) {
    const Millis some = Millis(100 + below(m_rng, 100)) * (is_in_line ? 1 : 4);
    const Millis duration = m_missing_in_line == line_length ? first_in_line : some;
    m_missing_in_line -= is_in_line ? 1 : 0;
    m_next_patient = now + (is_in_line ? pause_in_line : random_pause(m_rng, pause_of_patient));
    start(patient_run(duration));
  }
}

std::size_t Storm::patient() const
{
  const std::string key = patient_run(Millis(0)).record.keys.front();
  return static_cast<std::size_t>(std::count_if(
      m_active.begin(), m_active.end(), [&](const Active& active) { return active.record.keys.front() == key; }));
}

// Now and then several at once, which then wait for each other.
void Storm::start_burst()
{
  const std::uint64_t count = below(m_rng, 10) == 0 ? 4 : 1;
  for (std::uint64_t i = 0; i < count; ++i) {
    start(draw_run(m_rng, m_options.process_faults, m_options.forms));
  }
}

std::filesystem::path Storm::evidence_path(std::size_t run) const
{
  return m_options.dir / (std::to_string(run) + ".job");
}

std::string Storm::frozen_file(std::size_t run) const
{
  return m_options.frozen == nullptr ? "" : m_options.frozen->directory() / std::to_string(run);
}

test::ProcessOptions Storm::process_options(const std::string& mark) const
{
  test::ProcessOptions options{.env = m_options.environment, .death_signal = SIGKILL};
  options.env[run_variable] = mark;
  options.new_session = true;
  return options;
}

void Storm::start(RunPlan plan)
{
  const std::size_t id = m_records.size();
  plan.record.id = id;
  EvidenceFile file(evidence_path(id));
  const Words argv = argv_of(plan,
                             {.rlock = m_options.rlock,
                              .server_options = m_options.server_options,
                              .job = m_options.job,
                              .frozen_file = frozen_file(id)},
                             file.path());
  for (const std::string& word : argv) {
    plan.record.command += (plan.record.command.empty() ? "" : " ") + word;
  }
  plan.record.spawned = m_clock.now();
  RunRecord& record = m_records.emplace_back(std::move(plan.record));
  std::optional<ProcessFault> fault;
  if (plan.fault) {
    fault.emplace(*std::move(plan.fault), record);
  }
  m_active.push_back({record, test::Process(argv, process_options(run_mark(id))), std::move(file), std::move(fault)});
}

// An operator breaks a lock: with --now its job may still run, otherwise it is stopped first.
void Storm::operate()
{
  const Words keys = storm_keys();
  const bool now = below(m_rng, 3) == 0;
  FaultRecord record{.name = now ? "force-unlock --now" : "force-unlock",
                     .excuse = now ? Excuse::data_loss : Excuse::none,
                     .key = keys[below(m_rng, keys.size())],
                     .begin = m_clock.now(),
                     .end = {}};
  Words words{m_options.rlock, "force-unlock", "-k", record.key, "--yes"};
  words.insert(words.end(), m_options.server_options.begin(), m_options.server_options.end());
  // --sync is an option of the verbs that take locks.
  if (const auto sync = std::find(words.begin(), words.end(), "--sync"); sync != words.end()) {
    words.erase(sync, sync + 2);
  }
  const Words how = now ? Words{"--now"} : Words{"--grace", "1s"};
  words.insert(words.end(), how.begin(), how.end());
  m_operating.push_back({record, test::Process(words, process_options(run_mark(0)))});
}

void Storm::look_at_all(Instant now)
{
  for (auto active = m_active.begin(); active != m_active.end();) {
    look_at(*active, now);
    active = active->record.exit ? m_active.erase(active) : std::next(active);
  }
  for (EndedRun& ended : m_ended_runs) {
    add(ended.record.signals, ended.fault.go_on(0, {}, now));
  }
  look_at_watched();
  look_at_operations();
}

void Storm::watch(RunRecord& run)
{
  const bool is_known = m_seen.contains(run.id);
  if (is_known || run.form != JobForm::frozen || !run.evidence.begin) {
    return;
  }
  m_seen[run.id] = run.evidence.begin->at;
  m_watched.push_back({run, Fd(static_cast<int>(::syscall(SYS_pidfd_open, run.evidence.begin->pid, 0)))});
}

void Storm::look_at_watched()
{
  for (auto watched = m_watched.begin(); watched != m_watched.end();) {
    const Instant now = m_clock.now();
    pollfd process{.fd = watched->process.get(), .events = POLLIN, .revents = 0};
    const bool lives = watched->process && ::poll(&process, 1, 0) == 0;
    if (lives) {
      m_seen[watched->record.id] = now;
    }
    watched = lives ? std::next(watched) : m_watched.erase(watched);
  }
}

void Storm::look_at_operations()
{
  for (auto operation = m_operating.begin(); operation != m_operating.end();) {
    if (operation->process.running()) {
      ++operation;
      continue;
    }
    operation->record.end = m_clock.now();
    const int code = operation->process.wait().code;
    operation->record.done = code == 0;
    if (code == found_free) {
      operation->record.excuse = Excuse::none;  // after any other failure it may have removed the lock
    }
    m_operations.push_back(operation->record);
    operation = m_operating.erase(operation);
  }
}

void Storm::look_at(Active& active, Instant now)
{
  active.file.read_on(active.record.evidence);
  watch(active.record);
  Instant& freed = m_freed[active.record.keys.front()];
  if (active.record.evidence.end) {
    freed = std::max(freed, active.record.evidence.end->at);
  }
  if (active.fault) {
    add(active.record.signals, active.fault->go_on(active.process.pid(), freed, now));
  }
  if (!active.process.running()) {
    note_end(active);
  }
}

void Storm::note_end(Active& active)
{
  active.record.ended = m_clock.now();
  active.record.exit = active.process.wait();
  if (active.fault) {
    m_ended_runs.push_back({active.record, *std::move(active.fault)});
  }
  const std::string log = active.process.err();
  const auto wall_offset = std::chrono::system_clock::now().time_since_epoch() - m_clock.now().time_since_epoch();
  active.record.queued = queued_since(log, wall_offset);
  std::ofstream(m_options.dir / (std::to_string(active.record.id) + ".log")) << active.record.command << '\n'
                                                                             << test::show(*active.record.exit) << '\n'
                                                                             << log;
}

}  // namespace rlock::judge
