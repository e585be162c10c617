// SPDX-License-Identifier: Apache-2.0
#include "support/mongo_fixture.h"

#include "stores/mongo/mongo_backend.h"
#include "stores/mongo/mongo_connection.h"
#include "support/give_up.h"
#include "support/limits.h"
#include "support/redis_fixture.h"
#include "support/skip.h"
#include "support/sockets.h"
#include "support/wait_until.h"

#include <algorithm>
#include <csignal>
#include <cstdlib>

#include <doctest/doctest.h>
#include <unistd.h>

namespace rlock::test {
namespace {

namespace fs = std::filesystem;
using mongo::Document;
using mongo::Fields;

std::string variable(const char* name)
{
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// Where tests/ferretdb/build.sh puts it.
fs::path built_ferretdb()
{
  const std::string cache = variable("XDG_CACHE_HOME");
  return fs::path(cache.empty() ? variable("HOME") + "/.cache" : cache) / "rlock-tests/ferretdb";
}

std::string mongo_program()
{
  const std::string mongod = variable("RLOCK_TEST_MONGOD");
  const std::string program = mongod.empty() ? built_ferretdb().string() : mongod;
  return ::access(program.c_str(), X_OK) == 0 ? program : "";
}

mongo::ConnectionSpec spec_of(const std::string& url)
{
  const auto endpoint = mongo::parse_mongo_url(url);
  REQUIRE_MESSAGE(endpoint, endpoint.error().text);
  return mongo::connection_spec(*endpoint);
}

// Again, if the server has just ended the connection or starts.
mongo::Answer run(const std::string& url, const Document& command)
{
  const BootClock clock;
  mongo::Connection connection(spec_of(url), clock);
  auto answer = connection.ask(command, soon());
  for (int tries = 1; !answer && answer.error().code == ErrorCode::unreachable && tries < 100; ++tries) {
    clock.sleep_until(clock.now() + std::chrono::milliseconds(50), StopToken::never());
    answer = connection.ask(command, soon());
  }
  if (!answer) {
    give_up(answer.error().text);
  }
  return *std::move(answer);
}

// Where ShedLock keeps its locks.
constexpr std::string_view shedlock_collection = "shedLock";

// Runs a command that has a list of statements.
void change(const std::string& url, const char* command, const char* list, Document statement,
            std::string_view collection = mongo::default_collection)
{
  std::vector<Document> statements;
  statements.push_back(std::move(statement));
  run(url, Document().add(command, collection).add(list, statements));
}

mongo::Answer find(const std::string& url, const Document& filter,
                   std::string_view collection = mongo::default_collection)
{
  Document command;
  command.add("find", collection).add("filter", filter).add_small("batchSize", 10'000);
  return run(url, command);
}

}  // namespace

bool has_mongo() { return !mongo_program().empty() && mongo::libmongoc(); }

MongoServer::MongoServer(MongoOptions options) : DatabaseServer("mongo", ""), m_options(std::move(options))
{
  skip_if(!has_mongo(), "no MongoDB server (name a mongod in RLOCK_TEST_MONGOD, or run tests/ferretdb/build.sh)");
  const bool is_special = !m_options.user.empty() || !m_options.replica_set.empty() || m_options.certificate;
  skip_if(is_special && !is_ferretdb(), "this case starts FerretDB with settings of its own");
  if (m_options.certificate || !m_options.replica_set.empty() || !is_ferretdb()) {
    m_port = free_port();
  }
  MongoServer::start();
}

bool MongoServer::is_ferretdb() const { return variable("RLOCK_TEST_MONGOD").empty(); }

Words MongoServer::words_of_program() const
{
  const std::string address = "127.0.0.1:" + std::to_string(m_port);
  const std::string data = (dir() / "data").string();
  if (!is_ferretdb()) {
    return {mongo_program(),        "--dbpath",       data,     "--bind_ip", "127.0.0.1", "--port",
            std::to_string(m_port), "--nounixsocket", "--quiet"};
  }
  Words words{mongo_program(), "-dir", data};
  if (m_port == 0) {
    words.insert(words.end(), {"-unix", (dir() / "db.sock").string()});
  } else {
    words.insert(words.end(), {"-tcp", address});
  }
  if (!m_options.user.empty()) {
    words.insert(words.end(), {"-user", m_options.user, "-password", m_options.password});
  }
  if (m_options.certificate) {
    words.insert(words.end(), {"-cert", m_options.certificate->file, "-key", m_options.certificate->key});
  }
  if (!m_options.replica_set.empty()) {
    words.insert(words.end(), {"-set", m_options.replica_set});
  }
  return words;
}

void MongoServer::start()
{
  fs::create_directories(dir() / "data");
  start_process(words_of_program());
  wait_until(
      [&] {
        REQUIRE_MESSAGE(is_running(), log());
        const BootClock clock;
        mongo::Connection connection(spec_of(url()), clock);
        return static_cast<bool>(connection.facts(soon()));
      },
      "MongoDB answers");
}

// The path of a socket in a URL.
std::string MongoServer::url(const std::string& parameters) const
{
  std::string socket;
  for (const char byte : (dir() / "db.sock").string()) {
    socket += byte == '/' ? "%2F" : std::string(1, byte);
  }
  std::string all = parameters;
  if (m_options.certificate) {
    all += (all.empty() ? "" : "&") + std::string("tls=true&tlsAllowInvalidCertificates=true");
  }
  if (!m_options.replica_set.empty()) {
    all += (all.empty() ? "" : "&") + std::string("replicaSet=") + m_options.replica_set;
  }
  const std::string login = m_options.user.empty() ? "" : m_options.user + ":" + m_options.password + "@";
  return "mongodb://" + login + (m_port == 0 ? socket : "127.0.0.1:" + std::to_string(m_port)) + "/app" +
         (login.empty() && all.empty() ? "" : "?") + (login.empty() ? "" : "authSource=admin") +
         (login.empty() || all.empty() ? "" : "&") + all;
}

std::unique_ptr<record::Backend> MongoServer::open_backend(const Clock& clock) const
{
  return mongo::open_backend(spec_of(url()), clock, std::make_unique<SystemRng>());
}

std::vector<std::string> MongoServer::lock_names() const
{
  std::vector<std::string> names;
  const auto answer = find(url(), Document());
  for (const Fields& document : answer.batch()) {
    names.push_back(document.text("_id"));
  }
  std::ranges::sort(names);
  return names;
}

void MongoServer::delete_locks() const
{
  Document statement;
  change(url(), "delete", "deletes", std::move(statement.add("q", Document()).add_small("limit", 0)));
}

void MongoServer::end_connections()
{
  skip_if(!is_ferretdb(), "only FerretDB ends all connections when a test wants it");
  signal_server(SIGUSR1);
}

std::string MongoServer::record(const std::string& lock) const
{
  const auto answer = find(url(), Document().add("_id", lock));
  REQUIRE(!answer.batch().empty());
  const auto field = answer.batch().front().find("record");
  REQUIRE(field);
  return field->binary().value_or("");
}

void MongoServer::set_record(const std::string& lock, const std::string& bytes) const
{
  Document statement;
  statement.add("q", Document().add("_id", lock));
  statement.add("u", Document().add("$set", Document().add_binary("record", bytes)));
  change(url(), "update", "updates", std::move(statement));
}

void MongoServer::add_foreign_document(const std::string& id) const
{
  Document document;
  change(url(), "insert", "documents", std::move(document.add("_id", id).add("name", "somebody's")));
}

// _id at the top, because FerretDB inserts a document with another one when it stands inside of $and, as ShedLock writes it. So an
// upsert of a held lock fails with a duplicate key in MongoDB; here there is none when the lock is held.
void MongoServer::shed_lock(const std::string& id, std::chrono::seconds time) const
{
  const std::int64_t now = wall_clock_ms();
  const bool is_new = find(url(), Document().add("_id", id), shedlock_collection).batch().empty();
  Document statement;
  statement.add("q", Document().add("_id", id).add("lockUntil", Document().add_time("$lte", now)));
  statement.add("u", Document().add("$set", Document()
                                                .add_time("lockUntil", now + time / std::chrono::milliseconds(1))
                                                .add_time("lockedAt", now)
                                                .add("lockedBy", "java")));
  statement.add_flag("upsert", is_new);
  change(url(), "update", "updates", std::move(statement), shedlock_collection);
}

void MongoServer::shed_unlock(const std::string& id) const
{
  Document statement;
  statement.add("q", Document().add("_id", id));
  statement.add("u", Document().add("$set", Document().add_time("lockUntil", wall_clock_ms())));
  change(url(), "update", "updates", std::move(statement), shedlock_collection);
}

MongoServer::ShedHold MongoServer::shed_hold(const std::string& id) const
{
  const auto answer = find(url(), Document().add("_id", id), shedlock_collection);
  if (answer.batch().empty()) {
    return {};
  }
  const Fields document = answer.batch().front();
  const auto time_of = [&](const char* key) {
    const auto field = document.find(key);
    return field ? field->time_ms().value_or(0) : 0;
  };
  return {.holder = document.text("lockedBy"),
          .until_ms = time_of("lockUntil"),
          .since_ms = time_of("lockedAt"),
          .has_record = document.find("record").has_value()};
}

}  // namespace rlock::test
