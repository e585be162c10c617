// SPDX-License-Identifier: Apache-2.0
// The picture of rlock watch.
#include "cli/output/watch.h"

#include "base/duration.h"
#include "base/shown_time.h"
#include "base/text.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>

namespace rlock::cli {
namespace {

const Colors attributes(true);                // inverse and bold are no colors
constexpr std::size_t rows_for_details = 18;  // fewer rows have no room for the details of the selected lock
constexpr std::size_t rows_for_pool = 6;      // of the screen, for each line with a pool
constexpr std::size_t bar_width = 8;

struct WatchRow {
  const LockState* state;
  std::string key;
  std::string holder;
  std::string command;
  std::optional<Millis> age;
  double rate;
};

WatchRow watch_row_of(const LockState& state, const Picture& picture)
{
  WatchRow row{.state = &state,
               .key = printable(state.name.text()),
               .holder = {},
               .command = {},
               .age = age_of(state, picture.wall_ms),
               .rate = picture.rates.per_second(state.name, picture.now)};
  if (!state.held()) {
    return row;
  }
  const Holder& first = state.holders.front();
  row.holder = first.info ? printable(user_text(*first.info) + "@" + first.info->host) : printable(first.owner.text());
  row.holder += state.count > 1 ? " +" + std::to_string(state.count - 1) : "";
  if (const HolderInfo* const freeze = freeze_of(state)) {
    row.command = freeze_text(*freeze, state.ttl, picture.wall_ms);
  } else if (is_job_over(state)) {
    row.command = job_text(*first.info);
  } else if (first.info) {
    row.command = first.info->label.empty() ? without_controls(first.info->command) : printable(first.info->label);
  }
  const std::string mark = revoked_mark(state);
  // In front, because the cell of the holder and the end of that of the job may be cut.
  row.command.insert(0, mark.empty() ? "" : mark.substr(1) + " ");
  return row;
}

bool matches(const WatchRow& row, const std::string& filter)
{
  return filter.empty() || row.key.find(filter) != std::string::npos || row.holder.find(filter) != std::string::npos ||
         row.command.find(filter) != std::string::npos;
}

std::vector<WatchRow> rows_of(const Picture& picture, const View& view)
{
  std::vector<WatchRow> rows;
  for (const LockState& state : picture.states) {
    WatchRow row = watch_row_of(state, picture);
    if (matches(row, view.filter)) {
      rows.push_back(std::move(row));
    }
  }
  const auto before = [&](const WatchRow& a, const WatchRow& b) {
    return view.sort == SortBy::rate ? a.rate > b.rate : comes_before(*a.state, *b.state, view.sort, picture.wall_ms);
  };
  std::sort(rows.begin(), rows.end(), [](const WatchRow& a, const WatchRow& b) { return a.key < b.key; });
  std::stable_sort(rows.begin(), rows.end(),
                   [&](const WatchRow& a, const WatchRow& b) { return view.reversed ? before(b, a) : before(a, b); });
  return rows;
}

// "[######----] 20s"
std::string ttl_bar(const LockState& state)
{
  if (!state.held()) {
    return "free";
  }
  if (!state.ttl) {
    return ends_with_session(state.beside) ? "unknown" : "never ends";
  }
  const auto& info = state.holders.front().info;
  const Millis lease = std::max(info && info->lease > Millis{0} ? info->lease : *state.ttl, Millis{1});
  const auto filled = std::min<std::int64_t>(
      bar_width, (state.ttl->count() * static_cast<std::int64_t>(bar_width) + lease.count() / 2) / lease.count());
  return "[" + std::string(static_cast<std::size_t>(filled), '#') +
         std::string(bar_width - static_cast<std::size_t>(filled), '-') + "] " + show_roughly(*state.ttl);
}

std::string shown_rate(double rate)
{
  if (rate == 0) {
    return "-";
  }
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), rate >= 10 ? "%.0f/s" : "%.1f/s", rate);
  return text.data();
}

using WatchCells = std::array<std::string, 7>;

// Of all cells but the last, which takes the columns that are left.
using Widths = std::array<std::size_t, 6>;

// The names of locks and holders take what they need, and not more than leaves room for the job.
Widths widths_of(const std::vector<WatchRow>& rows, std::size_t columns)
{
  constexpr std::size_t others = 7 + 17 + 5 + 6 + 6;  // and the blanks between
  const std::size_t room = columns - std::min(columns, others);
  std::size_t key = 3;
  std::size_t holder = 6;
  for (const WatchRow& row : rows) {
    key = std::max(key, width(row.key));
    holder = std::max(holder, width(row.holder));
  }
  return {std::min(key, std::max<std::size_t>(16, room / 3)),
          std::min(holder, std::max<std::size_t>(14, room / 4)),
          7,
          17,
          5,
          6};
}

// One line of `columns`.
std::string line_of(const WatchCells& cells, const Widths& widths, std::size_t columns)
{
  std::string line;
  for (std::size_t i = 0; i < widths.size(); ++i) {
    line += fitted(cells[i], widths[i]) + ' ';
  }
  return fitted(line + cells.back(), columns);
}

WatchCells cells_of(const WatchRow& row)
{
  return {row.key,
          row.holder,
          row.age ? show_roughly(*row.age) : "-",
          ttl_bar(*row.state),
          std::to_string(row.state->waiting.size()),
          shown_rate(row.rate),
          row.command};
}

std::string watch_heading(const Picture& picture, std::size_t columns)
{
  std::size_t held = 0;
  std::size_t waiting = 0;
  for (const LockState& state : picture.states) {
    held += state.held() ? 1 : 0;
    waiting += state.waiting.size();
  }
  const std::string moment = shown_time(picture.wall_ms).value_or("");
  const std::string left = "rlock watch  " + printable(picture.server);
  const std::string right = std::to_string(held) + " held, " + std::to_string(waiting) + " waiting  " +
                            (moment.size() > 11 ? moment.substr(11) : "");  // without the date
  const std::size_t room = columns > width(right) + 1 ? columns - width(right) - 1 : 0;
  return attributes.paint(Style::bold, clipped(fitted(left, room) + " " + right, columns));
}

std::string shown(const Question& question)
{
  const std::string key = printable(question.about.name.text());
  switch (question.action) {
    case LockAction::force_unlock: {
      const Holder& holder = question.about.holders[question.holder];
      const std::string of =
          question.about.count > 1 ? "one of " + std::to_string(question.about.count) + " holders, " : "";
      return "y/N: force-unlock " + key + ", held by " + of + holder_text(holder.owner, holder.info) +
             "? Its job is stopped first";
    }
    case LockAction::freeze:
      return "y/N: freeze " + key + " for " + show_roughly(freeze_time) + ", when the job that runs has ended?";
    case LockAction::cancel_freeze: return "y/N: give up the freeze of " + key + ", which waits for its turn?";
    case LockAction::thaw: break;
  }
  return "y/N: thaw " + key + ", so that jobs run again?";
}

std::string footer(const Picture& picture, const View& view, std::size_t columns)
{
  if (view.question) {
    return attributes.paint(Style::bold, fitted(shown(*view.question), columns));
  }
  if (view.choice) {
    const std::string count = std::to_string(view.choice->about.holders.size());
    return attributes.paint(
        Style::bold,
        fitted("number of the holder, 1 to " + count + ": " + view.choice->typed + "_   (Esc: none)", columns));
  }
  if (view.types_filter) {
    return fitted("filter: " + printable(view.filter) + "_   (Enter keeps it, Esc clears it)", columns);
  }
  constexpr std::array<std::string_view, 5> names{"key", "age", "ttl", "waiting", "rate"};
  const std::string sorted =
      std::string(names[static_cast<std::size_t>(view.sort)]) + (view.reversed ? ", reversed" : "");
  const std::string filtered = view.filter.empty() ? "" : " (" + printable(view.filter) + ")";
  const std::string way = picture.details != nullptr ? "Esc back" : "Enter details";
  return fitted("q quit  " + way + "  f force  z freeze  sort: k a t w r (" + sorted + ")  / filter" + filtered,
                columns);
}

// As many lines as the words need, `most` at most.
std::vector<std::string> wrapped_lines(std::string_view text, std::size_t columns, std::size_t most)
{
  std::vector<std::string> lines(1);
  for (const std::string_view word : split_ended(text, ' ')) {
    const bool fits = lines.back().empty() || width(lines.back()) + 1 + width(word) <= columns;
    if (!fits && lines.size() < most) {
      lines.emplace_back();
    }
    lines.back().append(lines.back().empty() ? "" : " ").append(word);
  }
  return lines;
}

// That the server does not answer; the locks below are those of its last answer.
std::vector<std::string> banner(const Picture& picture, Size size)
{
  if (picture.error.empty()) {
    return {};
  }
  const std::string text =
      "NO ANSWER for " + show_roughly(picture.away) + ", the locks are as they were then: " + printable(picture.error);
  constexpr std::size_t around = 3;  // watch_heading, a line of the table, keys
  const std::size_t most = std::clamp<std::size_t>(size.rows - std::min(size.rows, around), 1, 4);
  std::vector<std::string> lines = wrapped_lines(text, size.columns, most);
  for (std::string& line : lines) {
    line = picture.colors.paint(Style::red, attributes.paint(Style::inverse, fitted(line, size.columns)));
  }
  return lines;
}

// A line for each pool, as many as leave room for the locks.
std::vector<std::string> pool_lines(const Picture& picture, const View& view, Size size)
{
  std::vector<std::string> lines;
  for (const ShownPool& pool : picture.pools) {
    const bool is_wanted = view.filter.empty() || pool.pool.key.find(view.filter) != std::string::npos;
    if (is_wanted && lines.size() < size.rows / rows_for_pool) {
      lines.push_back(fitted(show_pool(pool), size.columns));
    }
  }
  return lines;
}

std::vector<std::string> lines_of(std::string_view text, std::size_t columns, std::size_t most)
{
  std::vector<std::string> lines;
  for (const std::string_view line : split_ended(text, '\n')) {
    if (lines.size() < most) {
      lines.push_back(clipped(line, columns));
    }
  }
  return lines;
}

// The names of the columns, and the rows that fit on the screen, the selected row among them.
std::vector<std::string> table(const std::vector<WatchRow>& rows, const View& view, std::size_t most,
                               std::size_t columns)
{
  const Widths widths = widths_of(rows, columns);
  std::vector<std::string> lines{line_of({"KEY", "HOLDER", "AGE", "TTL", "WAIT", "RATE", "JOB"}, widths, columns)};
  const std::size_t from = view.selected >= most ? view.selected - most + 1 : 0;
  for (std::size_t i = from; i < rows.size() && i < from + most; ++i) {
    const std::string line = line_of(cells_of(rows[i]), widths, columns);
    lines.push_back(i == view.selected ? attributes.paint(Style::inverse, line) : line);
  }
  return lines;
}

void append(std::vector<std::string>& lines, std::vector<std::string> more)
{
  std::move(more.begin(), more.end(), std::back_inserter(lines));
}

// A text on the whole screen, from the line to which the user has scrolled.
std::vector<std::string> scrolled(const std::string& text, View& view, Size size)
{
  std::vector<std::string> lines = lines_of(text, size.columns, SIZE_MAX);
  view.page = std::max<std::size_t>(size.rows, 1);
  view.scrolled = std::min(view.scrolled, lines.size() - std::min(lines.size(), view.page));
  lines.erase(lines.begin(), lines.begin() + static_cast<std::ptrdiff_t>(view.scrolled));
  return lines;
}

// The details of one lock.
std::string page_of(const LockState& state, const Picture& picture)
{
  const std::string runs = show_history(state);
  return "\n" + show_status(state, picture.wall_ms, Colors(), picture.server_option) +
         (runs.empty() ? "" : "\n" + runs);
}

// The holders of which one is to lose the lock.
std::string page_of(const Choice& choice, const Picture& picture)
{
  std::string text = "\nforce-unlock " + printable(choice.about.name.text()) + ": which holder?\n";
  for (std::size_t i = 0; i < choice.about.holders.size(); ++i) {
    const Holder& holder = choice.about.holders[i];
    const std::string since = holder.info ? since_and_age(holder.info->since_ms, picture.wall_ms) : "";
    const std::string number = std::to_string(i + 1);
    text.append("  ").append(number).append("  ").append(describe(holder));
    text.append(since.empty() ? "" : ", since ").append(since).append("\n");
  }
  return text;
}

// All locks, and the details of the selected one where the screen has room for them.
std::vector<std::string> table_and_details(const std::vector<WatchRow>& rows, const Picture& picture, View& view,
                                           Size size)
{
  const std::size_t room = size.rows > 1 ? size.rows - 1 : 1;  // without the names of the columns
  const std::size_t for_rows = std::min(rows.size(), room / 2);
  const std::size_t for_details = size.rows >= rows_for_details && !rows.empty() ? room - for_rows : 0;
  view.page = room - for_details;

  std::vector<std::string> lines = table(rows, view, view.page, size.columns);
  if (for_details > 1) {
    lines.emplace_back();
    append(lines, lines_of(show_status(*rows[view.selected].state, picture.wall_ms, Colors(), picture.server_option),
                           size.columns, for_details - 1));
  }
  if (picture.states.empty()) {
    lines.push_back(clipped("no lock is held", size.columns));
  }
  return lines;
}

}  // namespace

void Rates::note(const std::vector<LockState>& states, Instant now)
{
  for (const LockState& state : states) {
    const auto [place, is_new] = m_seen.try_emplace(state.name.text(), Seen{state.fence, 0, now});
    Seen& seen = place->second;
    seen.changes += !is_new && state.fence != seen.fence ? 1 : 0;
    seen.fence = state.fence;
  }
}

double Rates::per_second(const LockName& name, Instant now) const
{
  const auto found = m_seen.find(name.text());
  if (found == m_seen.end() || now <= found->second.since) {
    return 0;
  }
  return static_cast<double>(found->second.changes) / std::chrono::duration<double>(now - found->second.since).count();
}

const LockState* selected_lock(const Picture& picture, const View& view)
{
  const std::vector<WatchRow> rows = rows_of(picture, view);
  return rows.empty() ? nullptr : rows[std::min(view.selected, rows.size() - 1)].state;
}

std::vector<std::string> frame(const Picture& picture, View& view, Size size)
{
  const std::vector<WatchRow> rows = rows_of(picture, view);
  view.selected = rows.empty() ? 0 : std::min(view.selected, rows.size() - 1);

  std::vector<std::string> lines{watch_heading(picture, size.columns)};
  append(lines, banner(picture, size));
  if (!view.choice && picture.details == nullptr) {
    append(lines, pool_lines(picture, view, size));
  }
  std::vector<std::string> end{footer(picture, view, size.columns)};
  if (!picture.message.empty() && size.rows > lines.size() + end.size() + 1) {
    end.insert(end.begin(), fitted(printable(picture.message), size.columns));
  }
  const Size middle{.rows = size.rows - std::min(size.rows, lines.size() + end.size()), .columns = size.columns};
  if (view.choice) {
    append(lines, scrolled(page_of(*view.choice, picture), view, middle));
  } else if (picture.details != nullptr) {
    append(lines, scrolled(page_of(*picture.details, picture), view, middle));
  } else {
    append(lines, table_and_details(rows, picture, view, middle));
  }
  lines.resize(size.rows - std::min(size.rows, end.size()));
  append(lines, std::move(end));
  return lines;
}

}  // namespace rlock::cli
