// SPDX-License-Identifier: Apache-2.0
// A manual page as plain text.
#pragma once

#include <string>
#include <string_view>

namespace rlock::cli {

// The sections of a page from DESCRIPTION to the one before SEE ALSO, in lines of 80 columns. `mdoc`: the source of a page that uses no
// other macros of mdoc(7) than those of rlock's pages about servers; the arguments of another macro are shown as words.
std::string text_of_page(std::string_view mdoc);

}  // namespace rlock::cli
