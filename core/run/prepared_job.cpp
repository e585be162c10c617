// SPDX-License-Identifier: Apache-2.0
#include "run/prepared_job.h"

#include "lock/validity.h"
#include "process/terminal.h"
#include "run/request_policy.h"

#include <algorithm>

namespace rlock {
namespace {

constexpr Instant already_over{};  // no job starts with this deadline

bool are_same(const HeldLock& one, const HeldLock& other)
{
  return one.name == other.name && one.hold.token() == other.hold.token();
}

}  // namespace

StopLeads stop_leads(const RunRequest& request)
{
  const Millis last_resort = std::min(request.ttl / 6, std::clamp(request.ttl / 20, Millis{10}, Millis{500}));
  const Millis kill = last_resort * 3 / 2;
  return {
      .signal = std::max(kill, signal_lead(request.ttl, request.kill_after)), .kill = kill, .last_resort = last_resort};
}

PreparedJob::PreparedJob(const RunRequest& request, const RunContext& context, std::string path,
                         std::function<bool(Instant)> release)
    : m_request(request),
      m_context(context),
      m_path(std::move(path)),
      m_release_for_runner(std::move(release)),
      m_shared_deadline(already_over)
{
}

// With --on-lost warn a lost lock does not stop the job; the end of a fixed lease does.
bool PreparedJob::warns_only() const { return m_request.on_lost == OnLost::warn && m_request.automatic; }

Result<Job> PreparedJob::fork_job(const std::vector<HeldLock>& locks, Instant earliest_end)
{
  const StopLeads leads = stop_leads(m_request);
  const JobSpec spec{
      .path = m_path,
      .argv = m_request.argv,
      .environment = job_environment(m_request.environment,
                                     {.held = locks, .lease = m_request.ttl, .server = m_request.server.shown()}),
      .late_variable = std::string(fence_variable),
      .stop_signal = m_request.stop_signal,
      .kill_after = m_request.kill_after,
      .leftovers = m_request.leftovers,
      .max_runtime = m_request.max_runtime,
      .signal_lead = leads.signal,
      .kill_lead = leads.kill,
      .last_resort_lead = leads.last_resort,
      .earliest_end = earliest_end,
      .release_for_runner = m_release_for_runner};
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
  prepare(locks, warns_only() ? far_future : valid_until(now, m_request.ttl));
  m_usable_until = now + m_request.ttl / 2;
}

void PreparedJob::request_refused()
{
  if (m_usable_until != far_future) {
    discard();
    m_usable_until = far_future;
  }
}

void PreparedJob::prepare(const std::vector<HeldLock>& locks, Instant earliest_end)
{
  discard_unusable();
  if (m_job || Terminal().is_shared()) {
    return;
  }
  if (auto job = fork_job(locks, earliest_end)) {
    m_job.emplace(*std::move(job));
    m_prepared_under = locks;
    m_usable_until = far_future;
  }
}

Result<Job> PreparedJob::start(const std::vector<HeldLock>& locks, Instant valid_until, std::uint64_t fence)
{
  move_deadline(valid_until);
  discard_unusable();
  if (!std::equal(locks.begin(), locks.end(), m_prepared_under.begin(), m_prepared_under.end(), are_same)) {
    m_job.reset();
  }
  if (!m_job) {
    auto job = fork_job(locks, far_future);
    if (!job) {
      return job.error();
    }
    m_job.emplace(*std::move(job));
  }
  Job job = *std::move(m_job);
  m_job.reset();
  const auto started = job.go(std::to_string(fence));
  return started ? Result<Job>(std::move(job)) : started.error();
}

void PreparedJob::move_deadline(Instant valid_until)
{
  m_shared_deadline.move_to(warns_only() ? far_future : valid_until);
}

}  // namespace rlock
