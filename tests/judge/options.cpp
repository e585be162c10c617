// SPDX-License-Identifier: Apache-2.0
#include "judge/options.h"

#include "judge/servers.h"
#include "support/paths.h"

#include <algorithm>
#include <exception>
#include <sstream>

namespace rlock::judge {
namespace {

std::vector<std::string> split(const std::string& list)
{
  std::vector<std::string> words;
  std::istringstream text(list);
  for (std::string word; std::getline(text, word, ',');) {
    words.push_back(word);
  }
  return words;
}

Millis minutes(const std::string& text) { return Millis(static_cast<std::int64_t>(std::stod(text) * 60'000)); }
Millis seconds(const std::string& text) { return Millis(static_cast<std::int64_t>(std::stod(text) * 1000)); }

// false: no such option.
bool set(JudgeOptions& options, const std::string& name, const std::string& value)
{
  if (name == "--minutes") {
    options.time = minutes(value);
  } else if (name == "--seed") {
    options.seed = std::stoull(value);
  } else if (name == "--on") {
    options.topology = value;
  } else if (name == "--rlock") {
    options.rlock = value;
  } else if (name == "--faults") {
    options.faults = split(value);
  } else if (name == "--jobs") {
    options.jobs = split(value);
  } else if (name == "--rate") {
    options.rate = std::stod(value);
  } else if (name == "--server-pause") {
    options.server_pause = seconds(value);
  } else if (name == "--report") {
    options.report = value;
  } else {
    return false;
  }
  return true;
}

bool is_fault_of_rlock(const std::string& fault) { return fault == "processes" || fault == "operators"; }

bool has(const std::vector<std::string>& names, const std::string& name)
{
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

bool JudgeOptions::wants(const std::string& fault) const
{
  return faults.empty() || has(faults, fault) || (!is_fault_of_rlock(fault) && has(faults, "servers"));
}

bool JudgeOptions::wants(JobForm form) const { return jobs.empty() || has(jobs, name_of(form)); }

std::string JudgeOptions::unknown_job() const
{
  const auto is_form = [](const std::string& name) {
    return std::any_of(job_forms.begin(), job_forms.end(), [&](JobForm form) { return name == name_of(form); });
  };
  const auto unknown = std::find_if_not(jobs.begin(), jobs.end(), is_form);
  return unknown == jobs.end() ? "" : *unknown;
}

std::string JudgeOptions::unknown_fault(const std::vector<std::string>& of_servers) const
{
  const auto unknown = std::find_if(faults.begin(), faults.end(), [&](const std::string& name) {
    return !is_fault_of_rlock(name) && name != "servers" && !has(of_servers, name);
  });
  return unknown == faults.end() ? "" : *unknown;
}

std::string JudgeOptions::repeat_command(const std::string& program) const
{
  std::ostringstream text;
  text << program << " --minutes " << static_cast<double>(time.count()) / 60'000 << " --seed " << seed << " --on "
       << topology << " --rate " << rate << " --server-pause " << static_cast<double>(server_pause.count()) / 1000;
  if (rlock != RLOCK_BINARY) {
    text << " --rlock " << rlock;
  }
  for (std::size_t i = 0; i < faults.size(); ++i) {
    text << (i == 0 ? " --faults " : ",") << faults[i];
  }
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    text << (i == 0 ? " --jobs " : ",") << jobs[i];
  }
  return text.str();
}

std::optional<JudgeOptions> parse_options(const std::vector<std::string>& words, std::uint64_t seed)
{
  JudgeOptions options{.seed = seed, .rlock = RLOCK_BINARY, .faults = {}, .jobs = {}, .report = {}};
  try {
    for (std::size_t i = 0; i < words.size(); ++i) {
      if (words[i] == "--keep") {
        options.keep = true;
      } else if (i + 1 == words.size() || !set(options, words[i], words[i + 1])) {
        return std::nullopt;
      } else {
        ++i;
      }
    }
  } catch (const std::exception&) {  // not a number
    return std::nullopt;
  }
  return options;
}

std::string names_of_forms()
{
  std::string text;
  for (const JobForm form : job_forms) {
    text += (text.empty() ? " " : ",") + std::string(name_of(form));
  }
  return text;
}

std::string usage_text()
{
  std::string text =
      "usage: rlock_judge [OPTION...]\n"
      "  --minutes N       how long the storm lasts (1)\n"
      "  --seed S          of all random numbers (a random one)\n"
      "  --on TOPOLOGY     one of:";
  for (const std::string_view name : topology_names()) {
    text += " " + std::string(name);
  }
  return text +
         "\n"
         "  --rlock PATH      the rlock that is judged (the built one)\n"
         "  --faults LIST     only these: processes, operators, servers, or server faults by their\n"
         "                    names, which a report lists (all)\n"
         "  --jobs LIST       only these forms of jobs:" +
         names_of_forms() +
         " (all)\n"
         "  --rate N          rlocks a second (3)\n"
         "  --server-pause S  seconds between two server faults (4)\n"
         "  --report FILE     writes the report there, too\n"
         "  --keep            keeps the evidence of a good run as well\n";
}

}  // namespace rlock::judge
