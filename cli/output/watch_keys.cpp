// SPDX-License-Identifier: Apache-2.0
// What a key does to the view of rlock watch.
#include "base/text.h"
#include "cli/output/watch.h"

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <utility>

namespace rlock::cli {
namespace {

constexpr char escape = 0x1b;

void sort_by(View& view, SortBy sort)
{
  view.reversed = view.sort == sort && !view.reversed;
  view.sort = sort;
}

void press_in_filter(View& view, char key)
{
  if (key == '\r' || key == '\n') {
    view.types_filter = false;
  } else if (key == escape) {
    view.types_filter = false;
    view.filter.clear();
  } else if (key == 0x7f || key == '\b') {
    while (!view.filter.empty() && !begins_character(view.filter.back())) {
      view.filter.pop_back();
    }
    view.filter.resize(view.filter.empty() ? 0 : view.filter.size() - 1);
  } else if (static_cast<unsigned char>(key) >= ' ') {
    view.filter += key;
  }
}

void answer(View& view, char key)
{
  if (key == 'y' || key == 'Y') {
    view.confirmed = std::move(view.question);
  }
  view.question.reset();
}

// The number is complete when no larger one may begin with it.
void choose(View& view, bool is_complete)
{
  const std::size_t count = view.choice->about.holders.size();
  std::size_t number = 0;
  for (const char digit : view.choice->typed) {
    number = std::min(number * 10 + static_cast<std::size_t>(digit - '0'), count + 1);
  }
  if (number == 0 || number > count) {
    view.choice->typed.clear();
  } else if (is_complete || number * 10 > count) {
    view.question = Question{LockAction::force_unlock, std::move(view.choice->about), number - 1};
    view.choice.reset();
  }
}

void press_in_choice(View& view, char key)
{
  std::string& typed = view.choice->typed;
  if (key >= '0' && key <= '9') {
    typed += key;
    choose(view, false);
  } else if (key == '\r' || key == '\n') {
    choose(view, true);
  } else if ((key == 0x7f || key == '\b') && !typed.empty()) {
    typed.pop_back();
  } else {
    view.choice.reset();
  }
}

constexpr std::size_t last_row = SIZE_MAX / 2;  // frame() limits it to what there is

// The selection moves, or what fills the screen.
void move_to(View& view, std::size_t row) { (view.details || view.choice ? view.scrolled : view.selected) = row; }

void move_by(View& view, std::size_t rows, bool is_down)
{
  const std::size_t from = view.details || view.choice ? view.scrolled : view.selected;
  move_to(view, is_down ? from + rows : from - std::min(from, rows));
}

// `sequence`: what follows the escape character of a key (ECMA-48, as terminals of today send it).
void press_special(View& view, std::string_view sequence)
{
  const auto is_any = [&](std::initializer_list<std::string_view> names) {
    return std::find(names.begin(), names.end(), sequence) != names.end();
  };
  if (is_any({"[A", "OA", "[B", "OB"})) {
    move_by(view, 1, sequence.back() == 'B');
  } else if (is_any({"[5~", "[6~"})) {
    move_by(view, view.page, sequence == "[6~");
  } else if (is_any({"[H", "OH", "[1~", "[7~"})) {
    move_to(view, 0);
  } else if (is_any({"[F", "OF", "[4~", "[8~"})) {
    move_to(view, last_row);
  }
}

// Without the escape character; empty: that is a key of its own.
std::string_view special_in(std::string_view keys)
{
  if (keys.size() < 3 || keys[0] != escape || (keys[1] != '[' && keys[1] != 'O')) {
    return {};
  }
  const auto is_final = [](char c) { return c >= '@' && c <= '~'; };
  const auto* const end = std::find_if(keys.begin() + 2, keys.end(), is_final);
  return {keys.begin() + 1, end == keys.end() ? end : end + 1};
}

void show_details(View& view, bool shows)
{
  view.details = shows;
  view.scrolled = 0;
}

void press_one(View& view, char key)
{
  switch (key) {
    case '\r':
    case '\n': show_details(view, !view.details); break;
    case escape: show_details(view, false); break;
    case 'g': move_to(view, 0); break;
    case 'G': move_to(view, last_row); break;
    case 'f': view.wanted = LockAction::force_unlock; break;
    case 'z': view.wanted = LockAction::freeze; break;
    case 'q': view.quits = true; break;
    case 'k': sort_by(view, SortBy::key); break;
    case 'a': sort_by(view, SortBy::age); break;
    case 't': sort_by(view, SortBy::ttl); break;
    case 'w': sort_by(view, SortBy::waiting); break;
    case 'r': sort_by(view, SortBy::rate); break;
    case '/': view.types_filter = true; break;
    default: break;
  }
}

}  // namespace

std::string_view press(View& view, std::string_view keys)
{
  while (!keys.empty()) {
    if (const std::string_view special = special_in(keys); !special.empty()) {
      press_special(view, special);
      keys.remove_prefix(special.size() + 1);
      continue;
    }
    if (view.question) {
      answer(view, keys.front());
    } else if (view.choice) {
      press_in_choice(view, keys.front());
    } else if (view.types_filter) {
      press_in_filter(view, keys.front());
    } else {
      press_one(view, keys.front());
    }
    keys.remove_prefix(1);
    if (view.wanted) {
      break;
    }
  }
  return keys;
}

}  // namespace rlock::cli
