// SPDX-License-Identifier: Apache-2.0
#include "engine/shared_table.h"

#include <algorithm>
#include "base/text.h"

namespace rlock::record {
namespace {

// rlock's tables beside it have longer names, of which PostgreSQL takes 63 bytes, and MySQL 64 characters.
constexpr std::size_t longest_table_name = 40;

}  // namespace

bool is_table_name(std::string_view name)
{
  constexpr std::string_view allowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.";
  const bool has_parts = !name.starts_with('.') && !name.ends_with('.') && std::ranges::count(name, '.') <= 1;
  return !name.empty() && name.size() <= longest_table_name && has_parts &&
         name.find_first_not_of(allowed) == std::string_view::npos;
}

std::string quoted_name(std::string_view name, char quote)
{
  std::string text(1, quote);
  for (const char byte : name) {
    text += std::string(byte == quote ? 2 : 1, byte);
  }
  return text + quote;
}

std::string quoted_table(std::string_view table, std::string_view suffix, char quote)
{
  const auto dot = table.find('.');
  const std::string last = std::string(table.substr(dot == std::string_view::npos ? 0 : dot + 1)) + std::string(suffix);
  return dot == std::string_view::npos ? quoted_name(last, quote)
                                       : quoted_name(table.substr(0, dot), quote) + "." + quoted_name(last, quote);
}

std::string with_words(std::string_view sql, std::span<const SqlWord> words)
{
  std::string text;
  while (!sql.empty()) {
    const auto plain = std::min(sql.find('{'), sql.size());
    text += sql.substr(0, plain);
    sql.remove_prefix(plain);
    const auto word = std::ranges::find_if(words, [&](const SqlWord& each) { return sql.starts_with(each.first); });
    text += word == words.end() ? sql.substr(0, 1) : word->second;
    sql.remove_prefix(word == words.end() ? std::min<std::size_t>(sql.size(), 1) : word->first.size());
  }
  return text;
}

Error not_prepared(std::string_view where, std::string_view table)
{
  if (table.empty()) {
    return {ErrorCode::config, std::string(where) +
                                   " has no table rlock_lock (leave out create=no once, or make the tables that rlock "
                                   "acl prints)"};
  }
  return {ErrorCode::config, std::string(where) + ": the table " + printable(table) +
                                 " is missing, or has no columns of rlock (run what rlock acl prints, or add "
                                 "create=yes to the URL once)"};
}

SharedVersion SharedVersion::of(const Version& version)
{
  const std::string_view text = version;
  const auto first = text.find(' ');
  const auto second = text.find(' ', first + 1);
  return {.number = std::string(text.substr(0, first)),
          .until_us = leading_number(text.substr(first + 1)),
          .holder = std::string(text.substr(second + 1))};
}

}  // namespace rlock::record
