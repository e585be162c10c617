// SPDX-License-Identifier: Apache-2.0
// A private store of objects of a test case: moto, which speaks the API of Amazon S3 and keeps the objects in memory (tests/moto), with a
// bucket in it.
#pragma once

#include "support/database_server.h"

namespace rlock::test {

// Whether this machine has python3 with moto, and libcurl.
bool has_s3();

class S3Server final : public DatabaseServer {
 public:
  // Skips the test case where there is no moto.
  S3Server();

  [[nodiscard]] std::string url() const override { return url("locks/cron", "clock-skew=0s"); }
  // `place`: the bucket and the prefix. `parameters`: beside the endpoint.
  [[nodiscard]] std::string url(const std::string& place, const std::string& parameters) const;
  [[nodiscard]] std::unique_ptr<record::Backend> open_backend(const Clock& clock) const override;
  [[nodiscard]] std::vector<std::string> lock_names() const override;
  void delete_locks() const override;
  void end_connections() override;
  void kill() override;
  void start() override;

  void lose_next_answer() const;   // of a PUT, which happens
  void ignore_conditions() const;  // from now on
  void put(const std::string& key, const std::string& bytes) const;

 private:
  std::uint16_t m_port;
};

}  // namespace rlock::test

#define S3_CASE(title) CASE_WITH(rlock::test::S3Server, server, title)
