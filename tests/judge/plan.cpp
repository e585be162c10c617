// SPDX-License-Identifier: Apache-2.0
#include "judge/plan.h"

#include <array>

namespace rlock::judge {
namespace {

constexpr const char* kept_key = "queue-1";  // no fault of processes here

std::string number(std::uint64_t value) { return std::to_string(value); }
std::string text_of(Millis time) { return std::to_string(time.count()) + "ms"; }
bool one_in(Rng& rng, std::uint64_t count) { return below(rng, count) == 0; }

// The weights of the kinds, and the locks that they use. Plain locks and read-write locks of one name exclude each other.
struct Choice {
  Kind kind;
  std::array<const char*, 2> keys;
};
constexpr std::array choices{
    Choice{Kind::plain, {"plain-1", "plain-1"}},
    Choice{Kind::plain, {"plain-1", "plain-2"}},
    Choice{Kind::plain, {"plain-1", "plain-2"}},
    Choice{Kind::plain, {"plain-2", "rw-1"}},
    Choice{Kind::nested, {"plain-1", "plain-2"}},
    Choice{Kind::several, {"plain-1", "plain-2"}},
    Choice{Kind::reader, {"rw-1", "rw-1"}},
    Choice{Kind::reader, {"rw-1", "rw-1"}},
    Choice{Kind::writer, {"rw-1", "rw-1"}},
    Choice{Kind::permits, {"permits-1", "permits-1"}},
    Choice{Kind::permits, {"permits-1", "permits-1"}},
    Choice{Kind::string, {"string-1", "string-1"}},
    Choice{Kind::shards, {"shards-1", "shards-1"}},
    Choice{Kind::script, {"plain-1", "plain-2"}},
    Choice{Kind::once, {"once-1", "once-1"}},
};

Words options_of(Kind kind)
{
  switch (kind) {
    case Kind::reader: return {"-s"};
    case Kind::writer: return {"-x"};
    case Kind::permits: return {"--permits", "2"};
    case Kind::string: return {"--format", "string"};
    case Kind::shards: return {"--shards", "2"};
    case Kind::once: return {"--for", "300ms"};
    default: return {};
  }
}

void append(Words& words, const Words& more) { words.insert(words.end(), more.begin(), more.end()); }

// The process of a script is signalled by its keeper alone. A nested rlock below one that can end neither is another story.
JobForm draw_form(Rng& rng, Kind kind, const std::vector<JobForm>& forms)
{
  const JobForm form = one_in(rng, 2) ? forms[below(rng, forms.size())] : forms.front();
  const bool is_possible = kind != Kind::script && !(kind == Kind::nested && outlasts_kill(form));
  return is_possible ? form : JobForm::direct;
}

void draw_lease(Rng& rng, RunPlan& plan)
{
  plan.record.ttl = Millis(1000 + static_cast<std::int64_t>(below(rng, 2000)));
  // A fixed lease ends although a process of its job lives on that KILL does not end.
  const bool may_be_fixed =
      plan.record.kind != Kind::script && plan.record.kind != Kind::nested && !outlasts_kill(plan.record.form);
  plan.record.fixed = may_be_fixed && one_in(rng, 6);
  append(plan.rlock_options, {plan.record.fixed ? "--lease" : "--ttl", text_of(plan.record.ttl)});
}

void draw_wait(Rng& rng, RunPlan& plan)
{
  const std::uint64_t dice = below(rng, 20);
  plan.record.patient = dice < 4;
  if (dice >= 18) {
    plan.rlock_options.emplace_back("-n");
  } else if (!plan.record.patient) {
    append(plan.rlock_options, {"-w", text_of(Millis(500 + static_cast<std::int64_t>(below(rng, 7500))))});
  }
}

// Most jobs are short, so that the locks are handed over often; some outlive the ttl. Those that get a fault are longer, so
// that it finds them alive, and that a job which outlives its rlock is seen to do so.
std::string draw_duration(Rng& rng, bool faulty)
{
  return number(one_in(rng, faulty ? 3 : 8) ? 1000 + below(rng, 2500)
                : faulty                    ? 400 + below(rng, 800)
                                            : 10 + below(rng, 400));
}

void draw_kill_after(Rng& rng, RunPlan& plan)
{
  append(plan.rlock_options, {"--kill-after", text_of(Millis(100 + static_cast<std::int64_t>(below(rng, 300))))});
}

// What the script has started outlives it, if its keeper lets it.
void draw_children_of_script(Rng& rng, RunPlan& plan)
{
  switch (below(rng, 4)) {
    case 0: append(plan.job_options, {"--child"}); break;
    case 1: append(plan.job_options, {"--child", "--child"}); break;
    case 2: append(plan.job_options, {"--ignore-term", "--child"}); break;
    default: break;
  }
  draw_kill_after(rng, plan);
}

void draw_job(Rng& rng, RunPlan& plan, bool faulty)
{
  const bool outlasts = outlasts_kill(plan.record.form);
  plan.job_options = {draw_duration(rng, faulty || outlasts)};
  if (plan.record.kind == Kind::script) {
    return draw_children_of_script(rng, plan);
  }
  if (plan.record.form == JobForm::hidden) {
    plan.job_options.emplace_back("--nobody");
  }
  if (one_in(rng, outlasts ? 2 : 8)) {
    plan.record.limited = true;
    append(plan.rlock_options, {"--max-runtime", text_of(Millis(50 + static_cast<std::int64_t>(below(rng, 1500))))});
  }
  // A child that outlives the leader of a session of its own is a daemon.
  const bool leads_session = plan.record.form == JobForm::setsid_wait || plan.record.form == JobForm::setsid_background;
  const Words child = leads_session ? Words{} : Words{"--child"};
  switch (below(rng, 12)) {
    case 0: plan.job_options.emplace_back("--setsid"); break;
    case 1: plan.job_options.emplace_back("--nobody"); break;
    case 2: append(plan.job_options, {"--ignore-term"}); break;
    case 3:
      append(plan.job_options, {"--ignore-term"});
      append(plan.job_options, child);
      break;
    case 4:
      append(plan.job_options, child);
      append(plan.job_options, child);
      break;
    case 5: append(plan.job_options, {"--daemon"}); break;
    default: break;
  }
  if (one_in(rng, 4)) {
    static constexpr std::array codes{1, 3, 42, 255};
    plan.job_options.push_back(number(static_cast<std::uint64_t>(codes[below(rng, codes.size())])));
  }
  draw_kill_after(rng, plan);
}

std::string quoted(const Words& words)
{
  std::string text;
  for (const std::string& word : words) {
    text += "'" + word + "' ";
  }
  return text;
}

Words keys_as_options(const Words& keys)
{
  Words words;
  for (const std::string& key : keys) {
    append(words, {"-k", key});
  }
  return words;
}

}  // namespace

Words storm_keys()
{
  return {"plain-1", "plain-2", "rw-1", "permits-1", "string-1", "shards-1:0", "shards-1:1", "once-1", kept_key};
}

RunPlan draw_run(Rng& rng, bool faulty, const std::vector<JobForm>& forms)
{
  const Choice& choice = choices[below(rng, choices.size())];
  RunPlan plan;
  plan.record.kind = choice.kind;
  plan.record.keys = {choice.keys[below(rng, 2)]};
  if (choice.kind == Kind::several) {
    plan.record.keys = {choice.keys[0], choice.keys[1]};
  }
  plan.record.permits = choice.kind == Kind::permits ? 2 : 1;
  plan.rlock_options = options_of(choice.kind);
  plan.record.form = draw_form(rng, choice.kind, forms);
  draw_lease(rng, plan);
  draw_wait(rng, plan);
  const bool gets_fault = faulty && below(rng, 5) < 2;
  draw_job(rng, plan, gets_fault);
  if (gets_fault) {
    plan.fault = possible_fault(draw_fault(rng, choice.kind, plan.record.ttl), plan.record.form);
  }
  return plan;
}

RunPlan patient_run(Millis duration)
{
  RunPlan plan;
  plan.record.keys = {kept_key};
  plan.record.ttl = Millis(3000);
  plan.record.patient = true;
  plan.rlock_options = {"--ttl", "3s"};
  plan.job_options = {std::to_string(duration.count())};
  return plan;
}

Words argv_of(const RunPlan& plan, const Programs& programs, const std::string& file)
{
  const JobForm form = plan.record.form;
  Words words{programs.rlock, plan.record.kind == Kind::once ? "once" : "run"};
  Words job{programs.job, file, plan.job_options.front()};
  if (form == JobForm::frozen) {
    append(job, {"--write", programs.frozen_file});  // opened before it becomes another user
  }
  job.insert(job.end(), plan.job_options.begin() + 1, plan.job_options.end());
  Words options = programs.server_options;
  append(options, keys_as_options(plan.record.keys));
  append(options, plan.rlock_options);
  if (plan.record.kind == Kind::script) {
    append(options, {"--log-format", "json", "--export"});
    return {"/bin/sh", "-c",
            "lock=$('" + programs.rlock + "' acquire --pid $$ " + quoted(options) + ") || exit; eval \"$lock\"; exec " +
                quoted(job)};
  }
  append(words, options);
  append(words, {"-v", "--log-format", "json", "--"});
  if (plan.record.kind == Kind::nested) {
    append(words, {programs.rlock, "run"});
    append(words, programs.server_options);
    append(words, {"-k", plan.record.keys.front(), "--ttl", text_of(plan.record.ttl), "--"});
  }
  append(words, job_words(form, job));
  return rlock_words(form, words);
}

}  // namespace rlock::judge
