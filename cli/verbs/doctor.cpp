// SPDX-License-Identifier: Apache-2.0
// rlock doctor: checks whether a server is fit to hold locks.
#include "base/system.h"
#include "base/text.h"
#include "cli/options/output.h"
#include "cli/options/take.h"
#include "cli/output/json.h"
#include "cli/output/output.h"
#include "cli/verbs/dispatch.h"
#include "doctor/facts.h"
#include "doctor/probe.h"
#include "doctor/rules.h"
#include "stores/redis_transport.h"

#include <algorithm>
#include <array>
#include <csignal>

namespace rlock::cli {
namespace {

struct RawDoctor {
  RawKeys keys;
  RawServer server;
  Millis ttl = default_ttl;
  ColorWhen color = ColorWhen::automatic;
  bool json = false;
};

constexpr std::string_view word_of(CheckStatus status)
{
  constexpr std::array<std::string_view, 4> words{"ok", "warn", "fail", "unknown"};
  return words[static_cast<std::size_t>(status)];
}

constexpr Style style_of(CheckStatus status)
{
  constexpr std::array<Style, 4> styles{Style::green, Style::yellow, Style::red, Style::yellow};
  return styles[static_cast<std::size_t>(status)];
}

std::string shown_finding(const Finding& finding, const Colors& colors)
{
  const std::string status = fitted(word_of(finding.status), 9);
  const std::string check = fitted(finding.check, 12) + "  ";
  const std::string margin(status.size() + check.size(), ' ');
  return colors.paint(style_of(finding.status), status) + check + finding.found + "\n" +
         (finding.advice.empty() ? "" : margin + "→ " + finding.advice + "\n");
}

struct PrintOptions {
  bool json;
  Colors colors = Colors();
};

// Several servers get a heading each. An empty `server` means this host.
void print_findings(const std::vector<Finding>& findings, const std::string& server, const PrintOptions& options,
                    bool several)
{
  if (several && !options.json) {
    print((server.empty() ? "this host" : server) + "\n");
  }
  for (const Finding& finding : findings) {
    print(options.json ? finding_json(finding, word_of(finding.status), server)
                       : shown_finding(finding, options.colors));
  }
}

bool any_failed(const std::vector<Finding>& findings)
{
  return std::any_of(findings.begin(), findings.end(),
                     [](const Finding& each) { return each.status == CheckStatus::fail; });
}

struct Diagnosed {
  Facts facts = {};
  std::vector<Finding> findings = {};
};

Result<Facts> facts_of(const ServerSpec& server, const Endpoint& endpoint, const RawDoctor& raw)
{
  const BootClock clock;
  SystemRng rng;
  ASSIGN_OR_RETURN(auto name, random_lock_name(raw.keys.prefix, "doctor", rng));
  const auto transport = open_transport(endpoint, local_options(server, endpoint), clock, StopToken::never());
  if (!transport) {
    Facts facts;
    facts.server = endpoint.shown();
    facts.failure = transport.error();
    return facts;
  }
  ASSIGN_OR_RETURN(const auto anonymous, open_transport(without_password(endpoint), local_options(server, endpoint),
                                                        clock, StopToken::never()));
  return collect_facts(**transport, *anonymous, endpoint,
                       {.name = std::move(name), .ttl = raw.ttl, .timeout = server.timeout}, clock, rng);
}

// Asks a store that is no Redis server.
Result<Diagnosed> diagnose_store(const ServerSpec& server, const Endpoint& endpoint, const RawDoctor& raw)
{
  const BootClock clock;
  SystemRng rng;
  ASSIGN_OR_RETURN(const auto name, random_lock_name(raw.keys.prefix, "doctor", rng));
  Diagnosed diagnosed;
  Facts& facts = diagnosed.facts;
  facts.server = endpoint.shown();
  ASSIGN_OR_RETURN(const auto store, open_store(server, clock, StopToken::never()));
  auto found = store->check_server({clock.now() + server.timeout, StopToken::never()});
  if (!found) {
    facts.failure = found.error();
  } else {
    facts.probe = probe_lock(*store, name, raw.ttl, server.timeout, clock, rng);
  }
  diagnosed.findings = check_store(facts, found ? *std::move(found) : std::vector<Finding>());
  if (facts.probe) {
    if (auto lease = check_lease(*store, name, raw.ttl, server.timeout, clock, rng)) {
      diagnosed.findings.push_back(*std::move(lease));
    }
  }
  return diagnosed;
}

Result<Diagnosed> diagnose(const ServerSpec& server, const Endpoint& endpoint, const RawDoctor& raw)
{
  if (!endpoint.is_redis()) {
    return diagnose_store(server, endpoint, raw);
  }
  ASSIGN_OR_RETURN(auto facts, facts_of(server, endpoint, raw));
  auto findings = check_server(facts, raw.ttl);
  return Diagnosed{.facts = std::move(facts), .findings = std::move(findings)};
}

// A server that could not be asked weighs more than one that failed a check.
ExitCode worse(ExitCode one, ExitCode other)
{
  const auto weight = [](ExitCode code) { return code == ExitCode::ok ? 0 : code == ExitCode::no ? 1 : 2; };
  return weight(one) >= weight(other) ? one : other;
}

Result<RunEnd> execute(const RawDoctor& raw, const Call& call)
{
  const PrintOptions options{.json = raw.json, .colors = resolve_colors(raw.color, call.environment)};
  ASSIGN_OR_RETURN(const auto server, resolve_server(raw.server, call.environment));
  const bool several = server.endpoints.size() > 1;
  ExitCode end = ExitCode::ok;
  std::vector<Facts> all;
  for (const Endpoint& endpoint : server.endpoints) {
    ASSIGN_OR_RETURN(const auto diagnosed, diagnose(server, endpoint, raw));
    const auto& [facts, findings] = diagnosed;
    print_findings(findings, facts.server, options, several);
    end = worse(end, facts.failure          ? exit_code_of(facts.failure->code)
                     : any_failed(findings) ? ExitCode::no
                                            : ExitCode::ok);
    all.push_back(facts);
  }
  const auto together = check_quorum(all);
  if (!together.empty()) {
    print_findings(together, server.shown(), options, several);
    end = worse(end, any_failed(together) ? ExitCode::no : ExitCode::ok);
  }
  print_findings(check_host(host_facts(call.signals.inherited_ignored(SIGCHLD))), "", options, several);
  return ended(end);
}

constexpr OptionRow<RawDoctor> ttl_row{
    {.names = "--ttl",
     .value = "DUR",
     .help = {"ttl that the locks will have; doctor compares times with it", default_ttl},
     .range = ttl_range},
    set<&RawDoctor::ttl>};

void add_doctor_options(OptionTable& options, RawDoctor& raw)
{
  options.add(ttl_row, raw);
  options.add(prefix_row, raw.keys);
  options.add(json_lines_row, raw.json);
  options.add(color_row, raw.color);
  add_server_options(options, raw.server);
}

}  // namespace

const Verb doctor_verb{
    .name = "doctor",
    .summary = "check whether this server is fit to hold locks",
    .synopsis = "[OPTION...]",
    .examples = {"rlock doctor -S redis://db1", "rlock doctor --json | grep '\"fail\"'",
                 "rlock doctor --prefix app: -S redis://deploy@db1  # where this user may lock"},
    .own_exits = {{ExitCode::ok, "fit; some checks may have warned, or were not permitted"},
                  {ExitCode::no, "a check failed"}},
    .operands = Operands::none,
    .add_options = bound<RawDoctor, add_doctor_options, execute>,
};

}  // namespace rlock::cli
