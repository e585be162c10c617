// SPDX-License-Identifier: Apache-2.0
// Keeps the records of locks in etcd (etcd_layout.h). The version of a record is the revision of its key, on which all members agree
// and which never comes back, with that of the read: whoever begins to listen later changes it.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include "base/clock.h"
#include "engine/record_backend.h"
#include "stores/etcd/etcd_url.h"

namespace rlock::etcd {

// Connects at the first call. `clock` must outlive the backend and its sources.
std::unique_ptr<record::Backend> open_backend(ConnectionSpec spec, const Clock& clock, std::unique_ptr<Rng> rng);

// The lines for etcdctl(1) that make a role for the keys of rlock and give it to `user`. `globs`: names of locks, or their beginnings
// ("app:*"), for which --format etcd needs keys of its own. ErrorCode::usage: a glob is none of these.
Result<std::string> rights_lines(const ConnectionSpec& spec, std::string_view user, std::span<const std::string> globs);

}  // namespace rlock::etcd
