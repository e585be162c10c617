// SPDX-License-Identifier: Apache-2.0
#include "stores/s3/s3_access.h"

#include <algorithm>
#include <optional>
#include <utility>
#include "base/hex.h"
#include "base/text.h"
#include "net/url_parts.h"

namespace rlock::s3 {
namespace {

constexpr std::size_t longest_key = 1024;  // in bytes, of Amazon S3

// Text for a line of metadata: printable ASCII.
std::string plain(std::string_view text)
{
  std::string all;
  for (const char c : text) {
    all += c > ' ' && c < 127 && c != '%' ? std::string(1, c) : "%" + hex_pair(static_cast<unsigned char>(c));
  }
  return all;
}

// Calls take(text) for each element of that name.
template <typename Take>
void for_each_element(std::string_view xml, const std::string& name, Take take)
{
  const std::string opens = "<" + name + ">", closes = "</" + name + ">";
  for (auto at = xml.find(opens); at != std::string_view::npos; at = xml.find(opens, at)) {
    at += opens.size();
    take(xml.substr(at, xml.find(closes, at) - at));
  }
}

}  // namespace

Request read_request(std::string_view lock, const std::string& etag)
{
  return {.key = key_of_lock(lock), .if_none_match = etag};
}

Request write_request(const SeenObject& seen, const LockObject& next, std::uint64_t number)
{
  Request request{.method = Request::Method::put, .key = key_of_lock(seen.lock), .if_match = seen.etag};
  request.if_none_match = seen.etag.empty() ? "*" : "";
  request.body = bytes_of(next, number);
  request.metadata.emplace_back("Rlock-Format", "1");
  if (!next.face.holder.empty()) {
    request.metadata.emplace_back("Locked-By", plain(next.face.holder));
    request.metadata.emplace_back("Lock-Until", iso_utc(next.face.until_us / 1000).value_or("unknown"));
  }
  return request;
}

Result<SeenObject> seen_in(Answer answer, std::string_view lock, const Connection& connection)
{
  SeenObject seen{
      .lock = std::string(lock), .etag = {}, .object = {}, .time_us = answer.time_us, .at = answer.heard_at};
  if (answer.kind == Answer::Kind::not_there) {
    return seen;
  }
  auto object = object_in(answer.body);
  if (!object || answer.etag.empty()) {
    return Error{ErrorCode::config, connection.where() + ": the object " + printable(key_of_lock(lock)) +
                                        (object ? " has no ETag, by which rlock compares"
                                                : " is no record of this version of rlock (use another prefix)")};
  }
  seen.etag = std::move(answer.etag);
  seen.object = *std::move(object);
  seen.time_us = std::max(seen.time_us, seen.object.time_us);
  return seen;
}

Result<Done> check_name(std::string_view lock, const Connection& connection)
{
  const std::size_t size = connection.spec().prefix.size() + 1 + key_of_lock(lock).size();
  return size <= longest_key
             ? Result(Done{})
             : Error{ErrorCode::config, "the name of the lock " + printable(shortened(lock, 60)) + " makes a key of " +
                                            std::to_string(size) + " bytes, and a bucket has keys of " +
                                            std::to_string(longest_key) + " at most"};
}

// Keys have no characters that XML escapes.
Result<std::vector<std::string>> lock_names(Connection& connection, const CallLimits& limit)
{
  const std::string begin = connection.spec().prefix + "/";
  const std::string query = "list-type=2&prefix=" + percent_encoded(begin);
  std::vector<std::string> names;
  std::string token;
  do {
    Request request{.key = {}, .query = query};
    if (!token.empty()) {
      request.query = "continuation-token=" + percent_encoded(std::exchange(token, {})) + "&" + query;
    }
    ASSIGN_OR_RETURN(const auto answer, connection.ask(request, limit));
    for_each_element(answer.body, "Key", [&](std::string_view key) {
      if (const auto name = key.starts_with(begin) ? lock_of_key(key.substr(begin.size())) : std::nullopt) {
        names.push_back(*name);
      }
    });
    for_each_element(answer.body, "NextContinuationToken", [&token](std::string_view next) { token = next; });
  } while (!token.empty());
  return names;
}

}  // namespace rlock::s3
