// SPDX-License-Identifier: Apache-2.0
#include "cli/output/watch_view.h"

#include "base/text.h"

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

void press_one(View& view, char key)
{
  switch (key) {
    case '\r':
    case '\n': view.details = !view.details; break;
    case escape: view.details = false; break;
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

void press(View& view, std::string_view keys)
{
  while (!keys.empty()) {
    const bool is_arrow = keys.size() >= 3 && keys[0] == escape && keys[1] == '[' && (keys[2] == 'A' || keys[2] == 'B');
    if (is_arrow && view.details) {
      keys.remove_prefix(3);
      continue;
    }
    if (is_arrow) {
      view.selected = keys[2] == 'B' ? view.selected + 1 : view.selected - (view.selected > 0 ? 1 : 0);
      keys.remove_prefix(3);
      continue;
    }
    if (view.question) {
      answer(view, keys.front());
    } else if (view.types_filter) {
      press_in_filter(view, keys.front());
    } else {
      press_one(view, keys.front());
    }
    keys.remove_prefix(1);
  }
}

}  // namespace rlock::cli
