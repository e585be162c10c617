// SPDX-License-Identifier: Apache-2.0
// What Redisson's RReadWriteLock and RPermitExpirableSemaphore do on the wire, one script each, on a key `k`.
#pragma once

#include "support/redis_fixture.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace rlock::test {

// One thread of a JVM. Its answers: nullopt is Java's nil.
class ForeignReadWrite {
 public:
  ForeignReadWrite(const RedisServer& server, std::string owner) : m_server(server), m_owner(std::move(owner)) {}

  // nullopt: taken; else the ttl.
  std::optional<std::int64_t> read(int lease = 30'000) const;
  std::optional<std::int64_t> write(int lease = 30'000) const;
  // 1: the lock is gone; 0: others are left; nullopt: not held.
  std::optional<std::int64_t> end_read() const;
  std::optional<std::int64_t> end_write(int lease = 30'000) const;
  // As clients do since 4.4: extends their own timeouts, and sets the ttl of the whole lock, which may shorten it.
  bool renew_read(int lease = 30'000) const;

 private:
  std::optional<std::int64_t> eval(const std::string& script, const std::vector<std::string>& args) const;
  const RedisServer& m_server;
  std::string m_owner;
};

class ForeignPermits {
 public:
  explicit ForeignPermits(const RedisServer& server) : m_server(server) {}

  bool set_permits(int number) const;  // only where there is none
  // "OK"; ":" and the earliest expiry; "" when none expires.
  std::string acquire(const std::string& id, std::int64_t lease) const;
  std::int64_t release(const std::string& id) const;

 private:
  const RedisServer& m_server;
};

// 16 bytes from their 32 hexadecimal digits.
std::string permit_bytes(const std::string& hex);

}  // namespace rlock::test
