// SPDX-License-Identifier: Apache-2.0
// What the server is asked for each kind of lock: the table of (mode × verb) → script.
#pragma once

#include "lock/mode.h"
#include "server/script.h"

#include <optional>
#include <string>
#include <string_view>

namespace rlock {

struct KindScripts {
  const Script& acquire;
  const Script& renew;
  const Script& release;
  const Script& inspect;
  const Script& force;
  const Script& raise;
};

const KindScripts& scripts_of(const Mode& mode);

// What the scripts call WISH.
std::string wish_of(const Mode& mode);

// The mode under which what the scripts call by this name can be inspected; nullopt: it is no lock.
std::optional<Mode> mode_called(std::string_view name);

// "a lock", "permits".
std::string with_article(const std::string& name);

// What to do about a key that holds another kind than was asked for: "leave out -s and -x".
std::string_view advice_for(std::string_view name);

}  // namespace rlock
