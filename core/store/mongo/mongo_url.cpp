// SPDX-License-Identifier: Apache-2.0
#include "store/mongo/mongo_url.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <memory>
#include <optional>
#include "base/text.h"
#include "net/url_parts.h"
#include "store/mongo/libmongoc.h"
#include "store/record/shared_table.h"

namespace rlock::mongo {
namespace {

constexpr std::string_view collection_parameter = "collection";

Error bad_url(std::string_view shown, std::string_view why)
{
  return {ErrorCode::usage, "the URL '" + printable(shown) + "' is invalid: " + std::string(why) +
                                " (mongodb://user@host:27017/database?replicaSet=NAME)"};
}

std::string lower_case(std::string_view text)
{
  std::string all(text);
  std::ranges::transform(all, all.begin(), [](char c) { return static_cast<char>(std::tolower(c)); });
  return all;
}

// "//user:password@hosts/database?a=b". libmongoc wants a / before the parameters.
UrlParts parts_of(std::string_view text)
{
  UrlParts parts = url_parts(text);
  if (parts.location.find('/') == std::string::npos) {
    parts.location += '/';
  }
  return parts;
}

std::optional<std::string> take_decoded(UrlParts& parts, std::string_view parameter)
{
  const auto value = parts.take(parameter);
  return value ? std::optional(percent_decoded(*value).value_or("")) : std::nullopt;
}

struct FreeUri {
  void operator()(mongoc_uri_t* uri) const { (*libmongoc())->mongoc_uri_destroy(uri); }
};
using Uri = std::unique_ptr<mongoc_uri_t, FreeUri>;

// What libmongoc knows beside the options of which it tells the type.
constexpr std::array<std::string_view, 9> further_options{
    "authmechanism",    "authmechanismproperties", "authsource", "compressors", "gssapiservicename",
    "readconcernlevel", "readpreferencetags",      "w",          "wtimeoutms"};

bool is_known(const Libmongoc& lib, const std::string& name)
{
  const char* const option = name.c_str();
  return lib.mongoc_uri_option_is_utf8(option) || lib.mongoc_uri_option_is_int32(option) ||
         lib.mongoc_uri_option_is_int64(option) || lib.mongoc_uri_option_is_bool(option) ||
         std::ranges::find(further_options, name) != further_options.end();
}

// libmongoc passes over what it does not know.
Result<Done> check_parameters(const Libmongoc& lib, const UrlParts& parts, const std::string& scheme_of_url)
{
  for (const std::string& each : parts.parameters) {
    const std::string given = each.substr(0, each.find('='));
    const std::string name = lower_case(given);
    const std::string shown = scheme_of_url + ":" + parts.without_login();
    if (name == "tlscertificatekeyfilepassword" || name == "sslclientcertificatekeypassword") {
      return bad_url(shown.substr(0, shown.find('?')),
                     given + " would be seen by others (use a key without a passphrase)");
    }
    if (name == "loadbalanced") {
      return bad_url(shown,
                     "a load balancer leads to mongos, which keeps no locks (name the servers of the replica set)");
    }
    if (!is_known(lib, name)) {
      return bad_url(shown, "there is no parameter " + printable(given));
    }
  }
  return Done{};
}

// A name of a collection as the server takes it.
bool is_collection(std::string_view name)
{
  return !name.empty() && name.size() <= 120 && !name.starts_with("system.") &&
         name.find_first_of(std::string_view("$\0", 2)) == std::string_view::npos;
}

// `url`: without user and password.
Result<Uri> uri_of(const std::string& url, bool has_user)
{
  const auto library = libmongoc();
  if (!library) {
    return library.error();
  }
  bson_error_t why{};
  Uri uri((*library)->mongoc_uri_new_with_error(url_for_libmongoc(url, has_user).c_str(), &why));
  return uri != nullptr ? Result<Uri>(std::move(uri)) : bad_url(url, printable(why.message));
}

}  // namespace

Result<Endpoint> parse_mongo_url(std::string_view url)
{
  const auto colon = url.find(':');
  const std::string own_scheme(url.substr(0, colon));
  const std::string_view text = url.substr(std::min(colon + 1, url.size()));
  if (!text.starts_with("//")) {
    return bad_url(own_scheme, "it has no //");
  }
  UrlParts parts = parts_of(text);
  const auto user = percent_decoded(parts.user);
  const auto password = percent_decoded(parts.password);
  const auto collection = take_decoded(parts, collection_parameter);
  const auto table = take_decoded(parts, record::table_parameter);
  const auto library = libmongoc();
  if (!library) {
    return library.error();
  }
  if (const auto known = check_parameters(**library, parts, own_scheme); !known) {
    return known.error();
  }
  const std::string shown = own_scheme + ":" + parts.without_login();
  if (!user || !password) {
    return bad_url(shown, "a % is not followed by two hexadecimal digits (write %25)");
  }
  if (collection && !is_collection(*collection)) {
    return bad_url(shown, "collection names no collection");
  }
  if (table && (collection || !is_collection(*table))) {
    return bad_url(shown,
                   "table is the name of ShedLock's collection, such as shedLock, and stands without collection");
  }
  if (const auto uri = uri_of(shown, !user->empty()); !uri) {
    return uri.error();
  }
  if (collection) {
    parts.parameters.push_back(std::string(collection_parameter) + "=" + *collection);
  }
  if (table) {
    parts.parameters.push_back(std::string(record::table_parameter) + "=" + *table);
  }
  Endpoint endpoint;
  endpoint.scheme = own_scheme;
  endpoint.kind = Endpoint::Kind::other;
  endpoint.path = parts.without_login();
  endpoint.user = *user;
  endpoint.password = *password;
  return endpoint;
}

std::string url_for_libmongoc(const std::string& url, bool has_user)
{
  std::string all = url;
  return has_user ? all.insert(all.find("//") + 2, "user:password@") : all;
}

ConnectionSpec connection_spec(const Endpoint& endpoint)
{
  UrlParts parts = parts_of(endpoint.path);
  ConnectionSpec spec;
  const auto table = take_decoded(parts, record::table_parameter);
  const auto collection = take_decoded(parts, collection_parameter);
  spec.is_shared = table.has_value();
  spec.collection = table ? *table : collection.value_or(std::string(default_collection));
  spec.url = endpoint.scheme + ":" + parts.without_login();
  spec.user = endpoint.user;
  spec.password = endpoint.password;
  const auto uri = uri_of(spec.url, !spec.user.empty());
  if (!uri) {
    return spec;
  }
  const Libmongoc& lib = **libmongoc();
  const char* const database = lib.mongoc_uri_get_database(uri->get());
  spec.database = database != nullptr && *database != '\0' ? database : std::string(default_database);
  spec.uses_tls = lib.mongoc_uri_get_tls(uri->get());
  spec.is_this_host = lib.mongoc_uri_get_srv_hostname(uri->get()) == nullptr;
  for (const auto* host = lib.mongoc_uri_get_hosts(uri->get()); host != nullptr; host = host->next) {
    spec.is_this_host = spec.is_this_host && is_this_host(host->host);
  }
  return spec;
}

}  // namespace rlock::mongo
