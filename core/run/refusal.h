// SPDX-License-Identifier: Apache-2.0
// What a job is told of a server that refuses it.
#pragma once

#include <string_view>

namespace rlock {

// Follows the error of a server that refuses a job, or a script with a lock, for want of the outer rlock's password.
inline constexpr std::string_view no_password_in_job =
    "; a job does not get the password that rlock had from a URL or RLOCK_PASSWORD: with --password-file FILE on the "
    "outer rlock the "
    "job gets that file";

}  // namespace rlock
