// SPDX-License-Identifier: Apache-2.0
// A private database server of a test case, in a directory of its own. As root, its processes run as the user of the package,
// because database servers refuse root.
#pragma once

#include <csignal>
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
  virtual void end_connections() = 0;                                     // of all clients

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

// A server of SQL.
class SqlServer : public DatabaseServer {
 public:
  using DatabaseServer::DatabaseServer;
  using DatabaseServer::url;
  // `user`: "bob". `parameters`: of the URL.
  [[nodiscard]] virtual std::string url(const std::string& user, const std::string& parameters) const = 0;
  // Runs SQL as the user who may do everything; returns the rows, a line each.
  [[nodiscard]] std::string sql(const std::string& text) const;
  [[nodiscard]] virtual Process start_sql(const std::string& text) const = 0;
  [[nodiscard]] std::vector<std::string> lock_names() const override;
  void delete_locks() const override { (void)sql("delete from rlock_lock; delete from rlock_event"); }
};

// Servers that agree by majority, on free ports of 127.0.0.1. Each is one process of this user.
class ClusterServer : public DatabaseServer, public DatabaseMembers {
 public:
  void start() override;
  [[nodiscard]] bool is_there() const override { return m_is_there; }
  void kill() override;
  void stop() override;
  void resume() override;

  DatabaseMembers* members() override { return this; }
  [[nodiscard]] std::size_t number_of_members() const override { return m_members.size(); }
  [[nodiscard]] std::uint16_t port_of(std::size_t member) const override { return m_members[member].port; }
  [[nodiscard]] std::vector<std::uint16_t> ports() const;
  [[nodiscard]] std::size_t leader() const;  // fails the test case where there is none
  void kill_member(std::size_t member) override;
  void start_member(std::size_t member) override;
  void stop_member(std::size_t member) override { stop_process(m_members[member].process->pid()); }
  void resume_member(std::size_t member) override { m_members[member].process->signal(SIGCONT); }
  void await_members() override;

 protected:
  ClusterServer(std::string_view purpose, std::size_t members);
  [[nodiscard]] virtual Words words_of_member(std::size_t member) const = 0;
  [[nodiscard]] virtual bool serves(std::size_t member) const = 0;
  [[nodiscard]] Process& process_of(std::size_t member) const { return *m_members[member].process; }

 private:
  struct Member {
    std::uint16_t port;
    std::unique_ptr<Process> process = nullptr;
  };
  std::vector<Member> m_members;
  bool m_is_there = true;
};

// "127.0.0.1:4711,127.0.0.1:4712"
std::string hosts_at(std::span<const std::uint16_t> ports);

// rlock with this server: to its end, or at once. The first of `words` is the verb.
inline Finished run_on(const DatabaseServer& server, Words words) { return run_at(server.url(), std::move(words)); }
inline Process start_on(const DatabaseServer& server, Words words) { return start_at(server.url(), std::move(words)); }
bool is_held(const DatabaseServer& server, const std::string& key = "k");
// `rlock run -k k OPTIONS -- JOB`, which has the lock when this returns.
Process held_run(const DatabaseServer& server, const Words& options = {}, const Words& job = {"sleep", "60"});

// As root, makes the user of the package the owner of a file or directory.
void give_to_user(const std::filesystem::path& path, const std::string& user);

// Runs a program that prepares a server.
void run_to_end(Words argv);

}  // namespace rlock::test
