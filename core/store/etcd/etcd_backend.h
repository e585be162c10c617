// SPDX-License-Identifier: Apache-2.0
// Keeps the records of locks in etcd (etcd_layout.h). The version of a record is the revision of its key, on which all members agree
// and which never comes back, with that of the read: whoever begins to listen later changes it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include "base/clock.h"
#include "store/etcd/etcd_url.h"
#include "store/record/record_backend.h"

namespace rlock::etcd {

// Connects at the first call. `clock` must outlive the backend and its sources.
std::unique_ptr<record::Backend> open_backend(ConnectionSpec spec, const Clock& clock, std::unique_ptr<Rng> rng);

// The lines for etcdctl(1) that make a role for rlock and give it to `user`.
std::string rights_lines(const ConnectionSpec& spec, std::string_view user);
// The line that adds what --format etcd needs to that role: for a lock, or for those with a beginning ("app:*"). nullopt: the glob is
// none of these.
std::optional<std::string> native_rights_line(std::string_view glob);

}  // namespace rlock::etcd
