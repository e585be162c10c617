// SPDX-License-Identifier: Apache-2.0
// The requests of Redisson's RReadWriteLock and RPermitExpirableSemaphore, one script each, on a key `k`.
#pragma once

#include "support/redis_fixture.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace rlock::test {

// One thread of a JVM. nullopt is the nil of Java.
class ForeignReadWrite {
 public:
  ForeignReadWrite(const RedisServer& server, std::string owner) : m_server(server), m_owner(std::move(owner)) {}

  // nullopt: the client has the lock; else the ttl.
  std::optional<std::int64_t> read(int lease = 30'000) const;
  std::optional<std::int64_t> write(int lease = 30'000) const;
  // 1: the lock is free; 0: other holds are left; nullopt: the client does not hold the lock.
  std::optional<std::int64_t> end_read() const;
  std::optional<std::int64_t> end_write(int lease = 30'000) const;
  // Renews as clients since 4.4 do: extends the timeouts of this client, and sets the ttl of the whole lock, which may shorten
  // that ttl.
  bool renew_read(int lease = 30'000) const;

 private:
  std::optional<std::int64_t> eval(const std::string& script, const std::vector<std::string>& args) const;
  const RedisServer& m_server;
  std::string m_owner;
};

class ForeignPermits {
 public:
  explicit ForeignPermits(const RedisServer& server) : m_server(server) {}

  bool set_permits(int number) const;  // has no effect if there is a number
  // "OK": the client has a permit; ":" and the earliest expiry; "": no permit expires.
  std::string acquire(const std::string& id, std::int64_t lease) const;
  std::int64_t release(const std::string& id) const;

 private:
  const RedisServer& m_server;
};

// The 16 bytes of 32 hexadecimal digits.
std::string permit_bytes(const std::string& hex);

}  // namespace rlock::test
