// SPDX-License-Identifier: Apache-2.0
#include "run/prepared_job.h"

#include <algorithm>
#include <utility>
#include "base/text.h"
#include "process/terminal.h"
#include "run/stop_times.h"

namespace rlock {
namespace {

constexpr StopTimes already_over{};  // no job starts with this deadline

std::string shown_names(const RunRequest& request)
{
  return joined(request.names, ", ", [](const LockName& name) { return printable(name.text()); });
}

bool are_same(const HeldLock& one, const HeldLock& other)
{
  return one.name == other.name && one.hold.token() == other.hold.token() && one.lease == other.lease;
}

}  // namespace

PreparedJob::PreparedJob(const RunRequest& request, const RunContext& context, std::string path,
                         std::function<bool(const std::optional<OrphanedJob>&)> release,
                         std::function<std::optional<Instant>()> keep)
    : m_request(request),
      m_context(context),
      m_path(std::move(path)),
      m_release_for_runner(std::move(release)),
      m_keep_for_runner(std::move(keep)),
      m_shared_deadline(already_over)
{
}

// Whether a lost lock does not stop the job (--on-lost warn). The end of a fixed lease always does.
bool PreparedJob::warns_only() const { return m_request.on_lost == OnLost::warn && m_request.automatic; }

Result<Job> PreparedJob::fork_job(const std::vector<HeldLock>& locks, Instant earliest_last_resort)
{
  const JobSpec spec{
      .path = m_path,
      .argv = m_request.argv,
      .lock_names = shown_names(m_request),
      .environment = job_environment(m_request.environment, {.held = locks, .server = m_request.server.for_job()}),
      .late_variable = std::string(fence_variable),
      .stop_signal = m_request.stop_signal,
      .kill_after = m_request.kill_after,
      .leftovers = m_request.leftovers,
      .max_runtime = m_request.max_runtime,
      .earliest_last_resort = earliest_last_resort,
      .release_for_runner = m_release_for_runner,
      .keep_for_runner = m_keep_for_runner};
  return Job::prepare(spec, m_context.signals, m_shared_deadline);
}

// A guardian that was killed, by the last resort or by another process, has left its child to this process.
void PreparedJob::discard()
{
  if (m_job && !m_job->is_ready()) {
    m_job->take_over();
  }
  m_job.reset();
}

void PreparedJob::discard_unusable()
{
  if (m_job && (m_context.clock.now() >= m_usable_until || !m_job->is_ready())) {
    discard();
  }
}

void PreparedJob::prepare(const std::vector<HeldLock>& locks) { prepare(locks, far_future); }

void PreparedJob::prepare_for_first_request(const std::vector<HeldLock>& locks)
{
  const Instant now = m_context.clock.now();
  prepare(locks, stop_times(LeaseBudget({.from = now, .length = m_request.ttl})).last_resort);
  m_usable_until = now + m_request.ttl / 2;
}

void PreparedJob::discard_after_refusal()
{
  if (m_usable_until != far_future) {
    discard();
    m_usable_until = far_future;
  }
}

void PreparedJob::prepare(const std::vector<HeldLock>& locks, Instant earliest_last_resort)
{
  discard_unusable();
  if (m_job || Terminal().is_shared()) {
    return;
  }
  if (auto job = fork_job(locks, earliest_last_resort)) {
    m_job.emplace(*std::move(job));
    m_prepared_under = locks;
    m_earliest_last_resort = earliest_last_resort;
    m_usable_until = far_future;
  }
}

Result<Job> PreparedJob::start(const std::vector<HeldLock>& locks, std::uint64_t fence)
{
  discard_unusable();
  if (m_usable_until != far_future && m_shared_deadline.times().last_resort < m_earliest_last_resort) {
    discard();  // the lease is shorter than the one that was asked for
  }
  if (!std::equal(locks.begin(), locks.end(), m_prepared_under.begin(), m_prepared_under.end(), are_same)) {
    m_job.reset();
  }
  if (!m_job) {
    ASSIGN_OR_RETURN(auto job, fork_job(locks, far_future));
    m_job.emplace(std::move(job));
  }
  Job job = *std::move(m_job);
  m_job.reset();
  const auto started = job.go(std::to_string(fence));
  return started ? Result<Job>(std::move(job)) : started.error();
}

void PreparedJob::move_deadline(const LeaseBudget& lease) { m_shared_deadline.move_to(stop_times(lease)); }

StopTimes PreparedJob::stop_times(const LeaseBudget& lease) const
{
  return warns_only() ? never_stopped : rlock::stop_times(lease, m_request.kill_after);
}

}  // namespace rlock
