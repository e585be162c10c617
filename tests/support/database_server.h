// SPDX-License-Identifier: Apache-2.0
// A private database server of a test case, in a directory of its own. As root, its processes run as the user of the package,
// because database servers refuse root.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>
#include "base/clock.h"
#include "engine/record_backend.h"
#include "support/process.h"

namespace rlock::test {

// The members of a cluster, counted from 0, and what can happen to one of them.
class DatabaseMembers {
 public:
  virtual ~DatabaseMembers() = default;
  [[nodiscard]] virtual std::size_t number_of_members() const = 0;
  [[nodiscard]] virtual std::uint16_t port_of(std::size_t member) const = 0;  // for clients, on 127.0.0.1
  // For rlock, when it reaches the members at these ports.
  [[nodiscard]] virtual std::string url_at(std::span<const std::uint16_t> ports) const = 0;
  [[nodiscard]] virtual std::optional<std::size_t> find_leader() const = 0;  // nullopt: none answers

  virtual void kill_member(std::size_t member) = 0;   // kill -9
  virtual void start_member(std::size_t member) = 0;  // after kill_member(); does not wait
  virtual void stop_member(std::size_t member) = 0;   // SIGSTOP
  virtual void resume_member(std::size_t member) = 0;
  // Keeps the member and the others apart, where they reach each other by relays: one member at a time.
  virtual void cut_off_member(std::size_t member) = 0;
  virtual void join_members() = 0;
  virtual void await_members() = 0;  // each answers
};

class DatabaseServer {
 public:
  virtual ~DatabaseServer();
  DatabaseServer(const DatabaseServer&) = delete;
  DatabaseServer& operator=(const DatabaseServer&) = delete;

  [[nodiscard]] virtual std::string url() const = 0;  // for rlock, with the rights to do everything
  [[nodiscard]] virtual std::unique_ptr<record::Backend> open_backend(const Clock& clock) const = 0;
  [[nodiscard]] virtual std::vector<std::string> lock_names() const = 0;  // of all records, sorted
  virtual void delete_locks() const = 0;                                  // all records and event logs
  virtual void end_connections() const = 0;                               // of all clients

  virtual void start() = 0;                                                    // after kill()
  [[nodiscard]] virtual bool is_there() const { return m_server != nullptr; }  // false: after kill()
  virtual void kill();                                                         // kill -9 of all its processes: a crash
  virtual void stop();                                                         // SIGSTOP of all its processes
  virtual void resume();
  virtual DatabaseMembers* members() { return nullptr; }  // nullptr: it is no cluster

  // The command that runs `argv` as the user of the package, if this process is of root.
  [[nodiscard]] Words as_server_user(Words argv) const;

 protected:
  // Makes a directory that the user of the package owns. `purpose`: a part of its name. `user`: empty: that of this process.
  DatabaseServer(std::string_view purpose, std::string user);
  [[nodiscard]] const std::filesystem::path& dir() const { return m_dir; }
  void start_process(Words argv);
  [[nodiscard]] bool is_running() const { return m_server != nullptr && m_server->running(); }
  void signal_server(int number) const { m_server->signal(number); }  // its main process only
  [[nodiscard]] std::string log() const { return m_server == nullptr ? "" : m_server->err(); }

 private:
  void signal_all(int number) const;
  [[nodiscard]] bool has_other_user() const;

  std::filesystem::path m_dir;
  std::string m_user;
  std::unique_ptr<Process> m_server;
};

// As root, makes the user of the package the owner of a file or directory.
void give_to_user(const std::filesystem::path& path, const std::string& user);

// Runs a program that prepares a server.
void run_to_end(Words argv);

}  // namespace rlock::test
