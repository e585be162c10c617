// SPDX-License-Identifier: Apache-2.0
// How the job of a run is started, and so which of its processes rlock finds, and which it can end.
#pragma once

#include "judge/servers.h"

#include <array>
#include <string>

namespace rlock::judge {

enum class JobForm {
  direct,
  timeout,            // sh -c 'timeout 60 JOB; …': a process group of its own
  setsid_wait,        // setsid -w JOB: a session of its own, and a process that waits for it
  setsid_background,  // sh -c 'setsid JOB & wait': the same without another process
  frozen,             // writes to a file system that stands still for seconds: state D
  hidden,             // another user's below hidepid=2: rlock neither sees nor may signal it
};
inline constexpr std::array job_forms{JobForm::direct,      JobForm::timeout,
                                      JobForm::setsid_wait, JobForm::setsid_background,
                                      JobForm::frozen,      JobForm::hidden};
const char* name_of(JobForm form);  // "setsid-wait"

// Its process is not the main process of the job, which tells of its death with 128 + the signal's number.
bool is_wrapped(JobForm form);

// Its process has left the job's process group, so the kernel does not kill it when rlock and its guardian are both killed or stopped.
bool leaves_group(JobForm form);

// KILL does not end its process at once, or not at all. rlock keeps the lock meanwhile, if it can.
bool outlasts_kill(JobForm form);

// The words to execute for a job, in the place of `job`: the job and its arguments.
Words job_words(JobForm form, const Words& job);

// The words to execute for `rlock`: an rlock and its arguments.
Words rlock_words(JobForm form, const Words& rlock);

// Empty: this machine can hide processes from an rlock. Otherwise the reason.
std::string why_not_hidden();

}  // namespace rlock::judge
