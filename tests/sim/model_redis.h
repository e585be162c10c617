// SPDX-License-Identifier: Apache-2.0
// The simulated Redis server keeps its keys in the key space of the record engine (engine/key_space.h). Here is what tests
// print of it.
#pragma once

#include <string>
#include "engine/key_space.h"

namespace rlock::sim {

using record::Entry;
using record::Hash;
using record::KeySpace;
using record::List;
using record::SortedSet;
using record::Words;

// The whole state as text, a line for each key: type, value, and whether it has a ttl.
std::string dump(KeySpace& keys);

}  // namespace rlock::sim
