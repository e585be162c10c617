// SPDX-License-Identifier: Apache-2.0
#include "store/redis/kinds.h"

#include "lua/scripts.h"

#include <array>

namespace rlock {
namespace {

const KindScripts plain{scripts::plain_acquire, scripts::plain_renew, scripts::plain_release,
                        scripts::plain_inspect, scripts::plain_force, scripts::plain_raise};
const KindScripts rw{scripts::rw_acquire, scripts::rw_renew, scripts::rw_release,
                     scripts::rw_inspect, scripts::rw_force, scripts::rw_raise};
const KindScripts permits{scripts::permits_acquire, scripts::permits_renew, scripts::permits_release,
                          scripts::permits_inspect, scripts::permits_force, scripts::permits_raise};
const KindScripts string{scripts::string_acquire, scripts::string_renew, scripts::string_release,
                         scripts::string_inspect, scripts::string_force, scripts::string_raise};

struct Named {
  std::string_view name;
  Mode mode;
  std::string_view advice;
};

const std::array<Named, 4> names{
    Named{"lock", Plain{}, "leave out -s, -x, --permits and --format"},
    Named{"read-write lock", Writer{}, "take it with -s or -x"},
    Named{"permits", Permits{0}, "take one with --permits N"},
    Named{"string", StringLock{}, "if it is a lock, take it with --format string"},
};

const Named* find(std::string_view name)
{
  for (const Named& known : names) {
    if (known.name == name) {
      return &known;
    }
  }
  return nullptr;
}

struct ScriptsOf {
  const KindScripts& operator()(const Plain&) const { return plain; }
  const KindScripts& operator()(const Reader&) const { return rw; }
  const KindScripts& operator()(const Writer&) const { return rw; }
  const KindScripts& operator()(const Permits&) const { return permits; }
  const KindScripts& operator()(const StringLock&) const { return string; }
};

struct WishOf {
  std::string operator()(const Plain&) const { return {}; }
  std::string operator()(const Reader&) const { return "read"; }
  std::string operator()(const Writer&) const { return "write"; }
  std::string operator()(const Permits& wanted) const { return std::to_string(wanted.limit); }
  std::string operator()(const StringLock&) const { return {}; }
};

}  // namespace

const KindScripts& scripts_of(const Mode& mode) { return std::visit(ScriptsOf{}, mode); }

std::string wish_of(const Mode& mode) { return std::visit(WishOf{}, mode); }

std::optional<Mode> mode_called(std::string_view name)
{
  const Named* known = find(name);
  return known != nullptr ? std::optional(known->mode) : std::nullopt;
}

std::string with_article(const std::string& name) { return name.ends_with('s') ? name : "a " + name; }

std::string_view advice_for(std::string_view name)
{
  const Named* known = find(name);
  return known != nullptr ? known->advice : "use another --key";
}

}  // namespace rlock
