// SPDX-License-Identifier: Apache-2.0
#include "support/nested_fixture.h"

#include "support/script.h"
#include "support/temp_dir.h"
#include "support/text_file.h"
#include "support/topology.h"
#include "support/wait_until.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <utility>

namespace rlock::test {

NestedRunsFixture::NestedRunsFixture() : m_dir(make_temp_dir("nest")) {}

Words NestedRunsFixture::script(const std::string& name, const std::string& text) const
{
  std::ofstream(m_dir / name) << "cd " << m_dir.string() << "\nRLOCK='" << rlock_program().string() << "'\n" << text;
  return {"sh", (m_dir / name).string()};
}

std::string NestedRunsFixture::inner(const std::string& name, const std::string& options, const Words& job)
{
  return "env | grep ^RLOCK > " + name + ".env\n$RLOCK run " + options + " -- " + job[0] + " " + job[1] +
         " & echo $! > " + name + ".pid\nwait $!\necho $? > " + name + ".code\n" + until_told(name);
}

std::string NestedRunsFixture::until_told(const std::string& name)
{
  return "until [ -e " + name + ".go ]; do sleep 0.02; done\n";
}

Words NestedRunsFixture::innermost(const std::string& name) const
{
  return script(name + ".sh", "env | grep ^RLOCK > " + name + ".env\ntouch " + name + ".here\n" + until_told(name));
}

Process NestedRunsFixture::start(Words options, const Words& job) const
{
  return start_run(server.url(), std::move(options), job);
}

void NestedRunsFixture::tell(const std::string& name) const { std::ofstream(m_dir / (name + ".go")); }

bool NestedRunsFixture::exists(const std::string& file) const { return std::filesystem::exists(m_dir / file); }

void NestedRunsFixture::wait_for(const std::string& file) const
{
  wait_until([&] { return exists(file); }, file + " is there");
}

int NestedRunsFixture::number_in(const std::string& file) const
{
  int number = -1;
  wait_until([&] { return static_cast<bool>(std::ifstream(m_dir / file) >> number); }, file + " has a number");
  return number;
}

std::string NestedRunsFixture::variable(const std::string& name, const std::string& of) const
{
  const std::string text = "\n" + text_of(m_dir / (name + ".env"));
  const auto at = text.find("\n" + of + "=");
  return at == std::string::npos ? "" : text.substr(at + of.size() + 2, text.find('\n', at + 1) - at - of.size() - 2);
}

std::int64_t NestedRunsFixture::count(const std::string& key) const
{
  if (is_quorum_topology()) {
    return count_by_quorum(key);
  }
  const Reply counts = server.command({"HVALS", key});
  return counts.elements.empty() ? 0 : std::stoll(counts.elements.at(0).text);
}

void NestedRunsFixture::comes_to(std::int64_t holds) const
{
  wait_until([&] { return count() == holds; }, "it is held " + std::to_string(holds) + " times");
}

// How many holds most servers know. The number on one server says little: each hold may have missed another server.
std::int64_t NestedRunsFixture::count_by_quorum(const std::string& key) const
{
  const auto all = server.answers({"HKEYS", "rlock:holder:{" + key + "}"});
  std::map<std::string, std::size_t> servers_with;
  for (const Reply& answer : all) {
    for (const std::string& field : as_texts(answer)) {
      servers_with[field] += field.starts_with("hold:") ? 1 : 0;
    }
  }
  return std::count_if(servers_with.begin(), servers_with.end(),
                       [&](const auto& one) { return one.second > all.size() / 2; });
}

std::int64_t NestedRunsFixture::pttl(const std::string& key) const { return as_int(server.command({"PTTL", key})); }

void NestedRunsFixture::gone_within(Millis ttl, const std::string& key) const
{
  CHECK(pttl(key) <= ttl.count());
  const auto is_free = [&] { return as_int(server.command({"EXISTS", key})) == 0; };
  wait_until(is_free, key + " is free", ttl + std::chrono::seconds(1));
}

bool NestedRunsFixture::all_keys_end() const
{
  const auto keys = as_texts(server.command({"KEYS", "*"}));
  return std::all_of(keys.begin(), keys.end(), [&](const std::string& key) { return pttl(key) != -1; });
}

ThreeDeep::ThreeDeep(const std::string& ttl, const std::string& innermost)
{
  const Words third = innermost.empty() ? fixture.innermost("third") : fixture.script("third.sh", innermost);
  const Words second = fixture.script("second.sh", NestedRunsFixture::inner("inner", "-k k --ttl " + ttl, third));
  const Words first = fixture.script("first.sh", NestedRunsFixture::inner("middle", "-k k --ttl " + ttl, second));
  outer.emplace(fixture.start({"-k", "k", "--ttl", ttl}, first));
  fixture.comes_to(3);
}

}  // namespace rlock::test
