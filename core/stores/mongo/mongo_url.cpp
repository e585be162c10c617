// SPDX-License-Identifier: Apache-2.0
#include "stores/mongo/mongo_url.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <memory>
#include <optional>
#include <utility>
#include "base/text.h"
#include "engine/shared_table.h"
#include "net/url_parts.h"
#include "stores/mongo/libmongoc.h"

namespace rlock::mongo {
namespace {

constexpr std::string_view collection_parameter = "collection";

constexpr std::string_view good_form = "mongodb://user@host:27017/database?replicaSet=NAME";

std::string lower_case(std::string_view text)
{
  std::string all(text);
  std::ranges::transform(all, all.begin(), [](char c) { return static_cast<char>(std::tolower(c)); });
  return all;
}

// libmongoc wants a / before the parameters.
UrlParts with_slash(UrlParts parts)
{
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

bool is_secret(const std::string& name, std::string_view value)
{
  return name == "tlscertificatekeyfilepassword" || name == "sslclientcertificatekeypassword" ||
         (name == "authmechanismproperties" &&
          lower_case(percent_decoded(value).value_or("")).find("token") != std::string::npos);
}

// What is wrong with a parameter; empty: nothing. libmongoc passes over what it does not know.
std::string fault_of(const Libmongoc& lib, const std::string& parameter)
{
  const std::string given = parameter.substr(0, parameter.find('='));
  const std::string name = lower_case(given);
  if (is_secret(name, std::string_view(parameter).substr(given.size()))) {
    return given + " would be seen by others (use a key without a passphrase)";
  }
  if (name == "loadbalanced") {
    return "a load balancer leads to mongos, which keeps no locks (name the servers of the replica set)";
  }
  return is_known(lib, name) ? "" : "there is no parameter " + printable(given);
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
  ASSIGN_OR_RETURN(const auto library, libmongoc());
  bson_error_t why{};
  Uri uri(library->mongoc_uri_new_with_error(url_for_libmongoc(url, has_user).c_str(), &why));
  return uri != nullptr ? Result<Uri>(std::move(uri)) : invalid_url(url, printable(why.message), good_form);
}

}  // namespace

Result<Endpoint> parse_mongo_url(std::string_view url)
{
  ASSIGN_OR_RETURN(auto read, read_server_url(url, good_form));
  read.parts = with_slash(std::move(read.parts));
  UrlParts& parts = read.parts;
  if (const std::string why = repeated_parameter(parts, {collection_parameter, record::table_parameter});
      !why.empty()) {
    return invalid_url(url, why, good_form);
  }
  const auto collection = take_decoded(parts, collection_parameter);
  const auto table = take_decoded(parts, record::table_parameter);
  ASSIGN_OR_RETURN(const auto library, libmongoc());
  for (const std::string& each : parts.parameters) {
    if (const std::string why = fault_of(*library, each); !why.empty()) {
      return invalid_url(url, why, good_form);
    }
  }
  if (collection && !is_collection(*collection)) {
    return invalid_url(url, "collection names no collection", good_form);
  }
  if (table && (collection || !is_collection(*table))) {
    return invalid_url(
        url, "table is the name of ShedLock's collection, such as shedLock, and stands without collection", good_form);
  }
  RETURN_IF_ERROR(uri_of(read.scheme + ":" + parts.without_login(), !read.user.empty()));
  if (collection) {
    parts.parameters.push_back(std::string(collection_parameter) + "=" + *collection);
  }
  if (table) {
    parts.parameters.push_back(std::string(record::table_parameter) + "=" + *table);
  }
  return other_endpoint(read);
}

std::string url_for_libmongoc(const std::string& url, bool has_user)
{
  std::string all = url;
  return has_user ? all.insert(all.find("//") + 2, "user:password@") : all;
}

ConnectionSpec connection_spec(const Endpoint& endpoint)
{
  UrlParts parts = with_slash(url_parts(endpoint.path));
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
