// SPDX-License-Identifier: Apache-2.0
#include "cli/options/take.h"

#include "lock/holder.h"
#include "process/signals.h"

#include <algorithm>

namespace rlock::cli {
namespace {

Result<Done> do_not_wait(const Given&, RunRequest& request)
{
  request.wait = Millis{0};
  return Done{};
}

constexpr OptionRow<RunRequest> wait_rows[] = {
    {{.names = "-n,--no-wait,--nonblock,--nb",
      .help = "give up at once when the lock is busy",
      .excludes = {"--wait", " (try -w 10s alone)"}},
     do_not_wait},
    {{.names = "-w,--wait,--timeout",
      .value = "DUR",
      .help = "give up after DUR; 0 is the same as -n (without -w: wait for ever)",
      .range = Durations{Millis{0}, longest_duration, "10s"},
      .is_neutral = is_no_time},
     set<&RunRequest::wait>},
    wait_server_row,
};

bool is_zero(std::string_view value) { return value == "0"; }

constexpr int most_to_count = 1000;  // waiters, of which the script asks one after the other whether they live

constexpr OptionRow<RunRequest> line_rows[] = {
    {{.names = "--priority",
      .value = "N",
      .help = "stand in line in front of the callers with a smaller N, from -100 to 100; first come, first served "
              "among the same (0)",
      .range = Numbers{-most_priority, most_priority, "10"},
      .excludes = {"--no-wait", " (try --priority 10 alone)"},
      .is_neutral = is_zero},
     set<&RunRequest::priority>},
    {{.names = "--max-waiting",
      .value = "N",
      .help = "do not wait when N callers wait already: end as if busy; 0 is the same as -n. With several keys any "
              "full line ends the call",
      .range = Numbers{0, most_to_count, "3"},
      .excludes = {"--no-wait", " (try --max-waiting 3 alone)"},
      .is_neutral = is_zero},
     set<&RunRequest::max_waiting>},
};

Result<Done> read_label(const Given& given, RunRequest& request) { return read_text(given, request.label); }

Result<Done> read_history(const Given& given, RunRequest& request)
{
  Result<Done> done = read_value(given, request.history);
  // A repeated release looks for the first one in the log.
  request.history = std::max(*request.history, default_history);
  return done;
}

// A job that is late must stay known: its history outlives so many times --every, and the usual month.
constexpr int every_in_history = 4;
constexpr Millis history_with_every = std::chrono::days{30};

constexpr OptionRow<RunRequest> record_rows[] = {
    {{.names = "--label",
      .value = "TEXT",
      .help = [] { return "text that status and watch show, at most " + std::to_string(longest_label) + " bytes"; }},
     read_label},
    {{.names = "--history",
      .value = "DUR",
      .help =
          [] {
            return "how long, at least, the server keeps the runs of the lock, up to 2 MB, for rlock history; rlock "
                   "events has the last " +
                   std::to_string(event_count) + " events (" + show(default_history) + ")";
          },
      .range = Durations{Millis{0}, longest_duration, "30d"}},
     read_history},
    {{.names = "--every",
      .value = "DUR",
      .help = "a run is expected to succeed that often: list --overdue tells which are late, because their last "
              "success ended so long ago; a daily job of up to two hours needs 26h. This stays so until a job runs "
              "with another --every, or rlock forget; rlock once that finds a success changes nothing. The history is "
              "kept for 30 days then, or four times DUR if that is longer",
      .range = Durations{Millis{1000}, longest_duration / every_in_history, "26h"}},
     set<&RunRequest::every>},
};

Result<Done> use_log_format(const Given& given, RawTake& raw)
{
  const Result<Done> done = choose_field<&RawTake::log_format, LogFormat::text, LogFormat::json>(given, raw);
  if (done) {
    set_log_style({.format = *raw.log_format, .key = ""});
  }
  return done;
}

constexpr OptionRow<RawTake> log_format_row{{.names = "--log-format",
                                             .value = "text|json",
                                             .help = "format of the lines on stderr; json: one object a line (text)"},
                                            use_log_format};

// Each store has its own lock clients.
Result<Done> check_format(const RunRequest& request)
{
  if (request.beside == NativeFormat::none) {
    return Done{};
  }
  if (std::holds_alternative<Permits>(request.kind)) {
    return usage("--permits and --format exclude each other (try one of them)");
  }
  const std::string format = "--format " + std::string(name_of(request.beside));
  const Engine* const engine = engine_beside(request.beside);
  if (engine == nullptr) {
    return Error{ErrorCode::config, format + ": this rlock was built without the store of its clients (" +
                                        std::string(stores_option) + ")"};
  }
  if (request.server.endpoints.size() > 1 || &engine_of(request.server.endpoints.front()) != engine) {
    return usage(format + " is for locks in " + std::string(engine->title) + ", which " + request.server.shown() +
                 " is not (leave out --format, or give a server with -S " + std::string(engine->name) + "://host)");
  }
  return Done{};
}

// Native clients stand in the line, too, and rlock does not see those that wait.
Result<Done> check_line(RunRequest& request)
{
  if (request.max_waiting == 0U) {
    request.wait = Millis{0};
  }
  const bool is_bounded = request.max_waiting > 0U;
  if (request.priority == 0 && !is_bounded) {
    return Done{};
  }
  const std::string option = is_bounded ? "--max-waiting" : "--priority";
  RETURN_IF_ERROR(check_has_line(request, option));
  return request.beside == NativeFormat::none
             ? Result(Done{})
             : usage(option + ": with --format " + std::string(name_of(request.beside)) +
                     " other clients stand in the line as well, and rlock cannot order or count them (leave out " +
                     option + ")");
}

}  // namespace

Result<Done> read_text(const Given& given, std::string& text)
{
  if (given.value.size() > longest_label) {
    return usage(given.option->name() + ": the text has " + std::to_string(given.value.size()) + " bytes, at most " +
                 std::to_string(longest_label) + " (shorten it)");
  }
  text = given.value;
  return Done{};
}

Result<Done> read_signal(const Given& given, int& target)
{
  const std::optional<int> signal = signal_number(given.value);
  if (!signal) {
    return usage("--signal: '" + printable(given.value) + "' is not a signal (try --signal TERM)");
  }
  target = *signal;
  return Done{};
}

Result<Done> read_notify(const Given& given, RunRequest& request)
{
  request.notify = given.value;
  return given.value.empty() ? usage("--notify: the command is empty (try --notify 'logger \"$RLOCK_MESSAGE\"')")
                             : Result(Done{});
}

void add_wait_options(OptionTable& options, RunRequest& request) { options.add(wait_rows, request); }

void add_line_options(OptionTable& options, RunRequest& request) { options.add(line_rows, request); }

void add_record_options(OptionTable& options, RunRequest& request) { options.add(record_rows, request); }

void add_log_format_option(OptionTable& options, RawTake& raw) { options.add(log_format_row, raw); }

Result<Done> check_has_line(const RunRequest& request, const std::string& option)
{
  if (request.wait == Millis{0}) {
    const std::string no_wait = request.max_waiting == 0U ? "--max-waiting 0" : "--wait 0";
    return usage(option + " is for runs that wait (leave out " + no_wait + ", or " + option + ")");
  }
  return request.server.endpoints.size() > 1
             ? usage(option + " is for one server: several servers have no queue (try one -S)")
             : Result(Done{});
}

Result<Done> finish_request(const RawTake& raw, const Environment& environment, RunRequest& request)
{
  request.environment = environment.all();
  if (request.every) {
    request.history = std::max(request.history.value_or(history_with_every), every_in_history * *request.every);
  }
  RETURN_IF_ERROR(assign(resolve_server(raw.server, environment), request.server));
  if (request.sync > 0 && request.server.endpoints.size() > 1) {
    return usage("--sync is for the replicas of one server; several servers have none (leave out --sync)");
  }
  const std::string_view refusal = engine_of(request.server.endpoints.front()).refuses_sync;
  if (request.sync > 0 && !refusal.empty()) {
    return usage("--sync: " + std::string(refusal));
  }
  RETURN_IF_ERROR(check_format(request));
  return check_line(request);
}

void name_in_log(const RawTake& raw, const LockName& lock)
{
  if (raw.log_format) {
    set_log_style({.format = *raw.log_format, .key = lock.text()});
  }
}

}  // namespace rlock::cli
