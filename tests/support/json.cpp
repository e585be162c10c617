// SPDX-License-Identifier: Apache-2.0
#include "support/json.h"

#include <nlohmann/json.hpp>

#include <ostream>
#include <sstream>

namespace rlock::test {

struct Json::Value {
  nlohmann::json json;
};

template <class Part>
Json Json::of(Part&& part)
{
  return Json(std::make_shared<const Value>(Value{nlohmann::json(std::forward<Part>(part))}));
}

Json::Json() : Json(of(nullptr)) {}
Json::Json(bool value) : Json(of(value)) {}
Json::Json(std::int64_t value) : Json(of(value)) {}
Json::Json(const char* text) : Json(of(text)) {}
Json::Json(const std::string& text) : Json(of(text)) {}

Json Json::parse(const std::string& text) { return of(nlohmann::json::parse(text)); }

Json Json::at(const std::string& name) const { return of(m_value->json.at(name)); }
Json Json::at(std::size_t index) const { return of(m_value->json.at(index)); }

std::vector<Json> Json::elements() const
{
  std::vector<Json> all;
  for (const nlohmann::json& element : m_value->json) {
    all.push_back(of(element));
  }
  return all;
}

Json Json::with(const std::string& name, const Json& value) const
{
  nlohmann::json changed = m_value->json;
  changed[name] = value.m_value->json;
  return of(std::move(changed));
}

std::size_t Json::size() const { return m_value->json.size(); }
bool Json::is_null() const { return m_value->json.is_null(); }
bool Json::is_number() const { return m_value->json.is_number(); }
bool Json::is_object() const { return m_value->json.is_object(); }
bool Json::is_string() const { return m_value->json.is_string(); }

std::int64_t Json::number() const { return m_value->json.get<std::int64_t>(); }
bool Json::is_true() const { return m_value->json.get<bool>(); }
std::string Json::text() const { return m_value->json.get<std::string>(); }
std::string Json::dump() const { return m_value->json.dump(); }

bool operator==(const Json& left, const Json& right) { return left.m_value->json == right.m_value->json; }

std::weak_ordering operator<=>(const Json& left, const Json& right)
{
  if (left == right) {
    return std::weak_ordering::equivalent;
  }
  return left.m_value->json < right.m_value->json ? std::weak_ordering::less : std::weak_ordering::greater;
}

std::ostream& operator<<(std::ostream& out, const Json& value) { return out << value.dump(); }

std::vector<Json> json_lines(const std::string& text)
{
  std::vector<Json> all;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    all.push_back(Json::parse(line));
  }
  return all;
}

}  // namespace rlock::test
