// SPDX-License-Identifier: Apache-2.0
// A private MongoDB server of a test case, in a directory of its own: the mongod that RLOCK_TEST_MONGOD names, else FerretDB, which
// speaks MongoDB's protocol and keeps the documents in SQLite (tests/ferretdb).
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include "support/certificates.h"
#include "support/database_server.h"

namespace rlock::test {

// Whether this machine has the program of a server, and libmongoc.
bool has_mongo();

struct MongoOptions {
  std::string user = {};  // FerretDB demands its password
  std::string password = {};
  std::optional<Certificate> certificate = std::nullopt;
  std::string replica_set = {};  // FerretDB claims to be its only member
};

class MongoServer final : public DatabaseServer {
 public:
  // Skips the test case where there is no server.
  explicit MongoServer(MongoOptions options = {});

  [[nodiscard]] std::string url() const override { return url(""); }
  // With `parameters` beside its own: "collection=locks".
  [[nodiscard]] std::string url(const std::string& parameters) const;
  [[nodiscard]] std::unique_ptr<record::Backend> open_backend(const Clock& clock) const override;
  [[nodiscard]] std::vector<std::string> lock_names() const override;
  void delete_locks() const override;
  void end_connections() override;
  void start() override;

  [[nodiscard]] bool is_ferretdb() const;
  void set_record(const std::string& lock, const std::string& bytes) const;
  [[nodiscard]] std::string record(const std::string& lock) const;
  void add_foreign_document(const std::string& id) const;

  // As ShedLock does in its collection, by the clock of this process: takes the lock `id` as `java` for that time if it is free, or
  // ends the hold that is there.
  void shed_lock(const std::string& id, std::chrono::seconds time) const;
  void shed_unlock(const std::string& id) const;
  struct ShedHold {
    std::string holder;
    std::int64_t until_ms = 0;
    std::int64_t since_ms = 0;
    bool has_record = false;
    [[nodiscard]] bool is_held() const { return until_ms > wall_clock_ms(); }
    bool operator==(const ShedHold&) const = default;
  };
  [[nodiscard]] ShedHold shed_hold(const std::string& id) const;

 private:
  [[nodiscard]] Words words_of_program() const;

  MongoOptions m_options;
  std::uint16_t m_port = 0;  // 0: a unix socket
};

}  // namespace rlock::test

#define MONGO_CASE(title) CASE_WITH(rlock::test::MongoServer, server, title)
