// SPDX-License-Identifier: Apache-2.0
// What the storm may start: of each form of jobs only what rlock must bear.
#include "judge/plan.h"
#include "support/seeded_rng.h"
#include "support/test.h"

#include <csignal>

using namespace rlock::test;
using namespace rlock::judge;

namespace {

bool hits(const FaultPlan& plan, Target target)
{
  return std::any_of(plan.steps.begin(), plan.steps.end(), [&](const auto& step) { return step.target == target; });
}

bool stops(const FaultPlan& plan, Target target)
{
  return std::any_of(plan.steps.begin(), plan.steps.end(),
                     [&](const auto& step) { return step.target == target && step.number == SIGSTOP; });
}

std::size_t position(const Words& words, const std::string& word)
{
  return static_cast<std::size_t>(std::find(words.begin(), words.end(), word) - words.begin());
}

}  // namespace

TEST_CASE("judge: runs with each form of jobs and each kind of lock are planned, with the faults that rlock must bear")
{
  const std::vector<JobForm> forms(job_forms.begin(), job_forms.end());
  std::map<JobForm, int> planned;
  std::map<JobForm, int> faults;
  int scripts_with_children = 0;
  test::SeededRng rng(1);
  for (int i = 0; i < 20'000; ++i) {
    const RunPlan plan = draw_run(rng, true, forms);
    const JobForm form = plan.record.form;
    const bool leaves_children = position(plan.job_options, "--child") < plan.job_options.size();
    CHECK_FALSE((form == JobForm::setsid_wait && leaves_children));  // these are daemons
    ++planned[form];
    scripts_with_children += plan.record.kind == Kind::script && leaves_children ? 1 : 0;
    CHECK((form == JobForm::direct || plan.record.kind != Kind::script));
    CHECK_FALSE((outlasts_kill(form) && plan.record.fixed));
    if (!plan.fault) {
      continue;
    }
    ++faults[form];
    const bool needs_kernel = hits(*plan.fault, Target::runner) && hits(*plan.fault, Target::guardian);
    CHECK_FALSE((form != JobForm::direct && needs_kernel));
    const bool needs_renewal = stops(*plan.fault, Target::runner) || stops(*plan.fault, Target::guardian);
    CHECK_FALSE((outlasts_kill(form) && needs_renewal));
  }
  CHECK(scripts_with_children > 500);
  for (const JobForm form : forms) {
    CAPTURE(std::string(name_of(form)));
    CHECK(planned[form] > 500);
    CHECK(faults[form] > 50);
  }
}

TEST_CASE("judge: with one form of jobs no other is planned")
{
  test::SeededRng rng(1);
  for (int i = 0; i < 1000; ++i) {
    const RunPlan plan = draw_run(rng, true, {JobForm::setsid_wait});
    CHECK((plan.record.form == JobForm::setsid_wait || plan.record.kind == Kind::script));
  }
}

TEST_CASE("judge: the words of a run start its job in its form")
{
  RunPlan plan;
  plan.record.keys = {"k"};
  plan.job_options = {"100", "--nobody"};
  const auto words = [&](JobForm form) {
    plan.record.form = form;
    return argv_of(plan, {.rlock = "rlock", .server_options = {"-S", "url"}, .job = "job", .frozen_file = "slow"},
                   "file");
  };
  const auto end_of = [](const Words& all) {
    return Words(all.begin() + static_cast<long>(position(all, "--")), all.end());
  };
  CHECK(end_of(words(JobForm::direct)) == Words{"--", "job", "file", "100", "--nobody"});
  CHECK(end_of(words(JobForm::setsid_wait)) == Words{"--", "setsid", "-w", "job", "file", "100", "--nobody"});
  CHECK(end_of(words(JobForm::frozen)) == Words{"--", "job", "file", "100", "--write", "slow", "--nobody"});
  CHECK(words(JobForm::timeout).front() == "rlock");
  const Words hidden = words(JobForm::hidden);
  CHECK(hidden.front() == "unshare");
  CHECK(position(hidden, "rlock") < position(hidden, "job"));
}
