// SPDX-License-Identifier: Apache-2.0
// Where the stories happen, RLOCK_TEST_ON: a test's RedisServer is reached there by its url().
#pragma once

#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace rlock::test {

class RedisServer;
struct RedisOptions;

enum class LockCandidate {
  unix_socket,
  tcp,
  tls,
  acl,       // as a user with the rights that `rlock acl` prints
  sentinel,  // through one sentinel, which never makes another server the master
  cluster,   // the server is all of a cluster: every name and every word goes there by its slot
  quorum3,   // the server is the first of three: what a test does to it is done to all
  quorum5,
};

LockCandidate place();  // an unknown one fails the test case
bool on_a_quorum();

// Skips the test case there.
void not_on(std::initializer_list<LockCandidate> places, const std::string& why);
void not_on_a_quorum(const std::string& why);

// What rlock has to be told besides the URL: certificates, a password. For clean_environment.
std::map<std::string, std::string> environment_of_place();

// What a place puts before a server that a test has not given a special form itself (a port, a password, TLS).
class Way {
 public:
  virtual ~Way() = default;
  [[nodiscard]] virtual std::string url() const = 0;
  virtual void started(const RedisServer&) {}  // anew
  [[nodiscard]] virtual std::vector<std::string> as_said_there(std::vector<std::string> words) const { return words; }
  virtual void each_other(const std::function<void(RedisServer&)>&) {}  // the others of a quorum
};
bool is_for_the_place(const RedisOptions& options);
RedisOptions as_the_place_needs(RedisOptions options);
std::shared_ptr<Way> way_to(const RedisServer& server, const RedisOptions& options);  // nullptr: none

}  // namespace rlock::test
