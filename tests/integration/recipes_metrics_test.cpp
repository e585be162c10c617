// SPDX-License-Identifier: Apache-2.0
// The recipes for Prometheus and Grafana: what the service writes, whether the alerts fire, and that all of them ask for families that
// rlock has.
#include "process/launch.h"
#include "support/integration.h"
#include "support/recipe_fixture.h"
#include "support/skip.h"

#include <regex>
#include <set>

using namespace rlock::test;

namespace {

// Runs promtool(1), which must succeed.
void promtool(const std::string& arguments)
{
  skip_if(!find_command("promtool", "/usr/bin:/bin:/usr/local/bin"), "there is no promtool here");
  Process tool({"sh", "-c", "promtool " + arguments});
  CHECK_MESSAGE(tool.wait(30s) == success, (tool.out() + tool.err()));
}

// The shell command of the service, with this rlock, and its last argument.
std::string service_command(const fs::path& file)
{
  const std::string service = text_of(recipes / "rlock-metrics.service");
  std::smatch command;
  REQUIRE(std::regex_search(service, command, std::regex("\nExecStart=(/bin/sh -c '[^\n]*' sh) [^ \n]*\n")));
  return std::regex_replace(command[1].str(), std::regex("/usr/bin/rlock"), RLOCK_BINARY) + " " + file.string();
}

std::set<std::string> families_in(const std::string& text)
{
  static const std::regex family("\\brlock_[a-z_]+");
  return {std::sregex_token_iterator(text.begin(), text.end(), family), std::sregex_token_iterator()};
}

}  // namespace

SERVER_CASE("recipes: the metrics service writes the state of all locks, also when the server is away")
{
  const fs::path file = make_temp_dir("metrics") / "rlock.prom";
  ProcessOptions options;
  options.env["RLOCK_SERVER"] = server.url();
  CHECK(run_rlock({"run", "-S", server.url(), "-k", "backup", "--every", "1d", "--", "true"}).code == 0);
  const Words service{"sh", "-c", service_command(file)};
  CHECK(Process(service, options).wait(30s) == success);
  const std::string there = text_of(file);
  expect_has(there, {"rlock_up 1\n", "rlock_held{key=\"backup\"} 0\n", "rlock_overdue{key=\"backup\"} 0\n"});
  promtool("check metrics <" + file.string());

  server.kill_hard();
  CHECK(Process(service, options).wait(30s) == success);
  CHECK(has(text_of(file), "rlock_up 0\n"));
  CHECK(!fs::exists(file.string() + ".new"));
}

TEST_CASE("recipes: promtool understands the alerts, and they fire when they should")
{
  const fs::path dir = make_temp_dir("alerts");
  fs::copy(recipes / "prometheus-alerts.yml", dir);
  std::ofstream(dir / "test.yml") << R"(rule_files: [prometheus-alerts.yml]
evaluation_interval: 1m
tests:
  - interval: 1m
    input_series:
      - {series: 'rlock_up', values: '0x10'}
      - {series: 'rlock_overdue{key="late"}', values: '1x10'}
      - {series: 'rlock_overdue{key="fine"}', values: '0x10'}
      - {series: 'rlock_last_success_timestamp_seconds{key="backup"}', values: '-94000x10'}
      - {series: 'rlock_last_success_timestamp_seconds{key="fine"}', values: '200x10'}
      - {series: 'rlock_last_failure_timestamp_seconds{key="fine"}', values: '100x10'}
      - {series: 'rlock_last_failure_timestamp_seconds{key="failed"}', values: '100x10'}
      - {series: 'rlock_age_seconds{key="long"}', values: '30000x10'}
      - {series: 'rlock_waiting{key="long"}', values: '1x10'}
      - {series: 'rlock_frozen{key="long"}', values: '0x10'}
      - {series: 'rlock_age_seconds{key="frozen"}', values: '30000x10'}
      - {series: 'rlock_waiting{key="frozen"}', values: '1x10'}
      - {series: 'rlock_frozen{key="frozen"}', values: '1x10'}
      - {series: 'rlock_age_seconds{key="forgotten"}', values: '90000x10'}
      - {series: 'rlock_frozen{key="forgotten"}', values: '1x10'}
    promql_expr_test:
      - {expr: 'ALERTS{alertstate="firing", alertname="RlockServerDown"}', eval_time: 4m, exp_samples: []}
      - expr: 'sum by (alertname, key) (ALERTS{alertstate="firing"})'
        eval_time: 10m
        exp_samples:
          - {labels: '{alertname="RlockServerDown"}', value: 1}
          - {labels: '{alertname="RlockOverdue", key="late"}', value: 1}
          - {labels: '{alertname="RlockBackupOld", key="backup"}', value: 1}
          - {labels: '{alertname="RlockRunFailed", key="failed"}', value: 1}
          - {labels: '{alertname="RlockHeldLong", key="long"}', value: 1}
          - {labels: '{alertname="RlockFrozenLong", key="forgotten"}', value: 1}
  - interval: 1m
    input_series:
      - {series: 'rlock_up', values: '1x10'}
    promql_expr_test:
      - expr: 'sum by (alertname, key) (ALERTS{alertstate="firing"})'
        eval_time: 10m
        exp_samples: [{labels: '{alertname="RlockBackupOld", key="backup"}', value: 1}]
)";
  promtool("test rules " + (dir / "test.yml").string());
}

TEST_CASE("recipes: alerts and dashboard ask for families that rlock has")
{
  const std::set<std::string> known = families_in(text_of(fs::path(RLOCK_SOURCE_DIR) / "cli/output/prometheus.cpp"));
  for (const char* recipe : {"prometheus-alerts.yml", "grafana-dashboard.json"}) {
    CAPTURE(recipe);
    const std::set<std::string> asked = families_in(text_of(recipes / recipe));
    CHECK(asked.size() >= 5);
    for (const std::string& family : asked) {
      CHECK_MESSAGE(known.contains(family), family);
    }
  }
  if (find_command("python3", "/usr/bin:/bin:/usr/local/bin")) {
    CHECK(Process({"python3", "-c", "import json, sys; assert json.load(open(sys.argv[1]))['panels']",
                   recipes / "grafana-dashboard.json"})
              .wait(30s) == success);
  }
}

TEST_CASE("recipes: systemd understands the service and the timer of the metrics")
{
  skip_if(!find_command("systemd-analyze", "/usr/bin:/bin"), "there is no systemd-analyze here");
  const fs::path dir = make_temp_dir("units");
  for (const char* unit : {"rlock-metrics.service", "rlock-metrics.timer"}) {
    fs::copy(recipes / unit, dir);
  }
  Process verify({"systemd-analyze", "verify", dir / "rlock-metrics.service", dir / "rlock-metrics.timer"});
  expect_end(verify, success, {err_is("")});
}
