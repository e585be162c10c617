// SPDX-License-Identifier: Apache-2.0
// A name of a lock that is also the name of a key beside another lock: no verb takes such a lock.
#include "support/integration.h"
#include "support/queue_fixture.h"

using namespace rlock::test;

namespace {

// The words before the server and the job, which creates the file `ran`.
std::vector<Words> ways_to_take(const std::string& key)
{
  return {{"run", "-k", key},
          {"run", "-n", "-k", key},
          {"run", "-s", "-k", key},
          {"run", "-x", "-k", key},
          {"run", "--permits", "2", "-k", key},
          {"run", "--format", "string", "-k", key},
          {"run", "-k", "innocent", "-k", key},
          {"run", "--shards", "2", "-k", key},
          {"run", "--cancel-in-progress", "-k", key},
          {"once", "--for", "1h", "-k", key},
          {"acquire", "--lease", "1m", "-k", key},
          {"acquire", "--lease", "1m", "-s", key},
          {"acquire", "--lease", "1m", "--export", "--shards", "2", key},
          {"flock", key},
          {"flock", "-s", "-n", key}};
}

bool is_acquire(const Words& words) { return words.front() == "acquire"; }

Words complete(Words words, const RedisServer& server, const Words& job)
{
  words.insert(words.begin() + 1, {"-S", server.url()});
  if (!is_acquire(words)) {
    if (words.front() != "flock") {
      words.emplace_back("--");
    }
    words.insert(words.end(), job.begin(), job.end());
  }
  return words;
}

std::string shown(const Words& words)
{
  std::string text;
  for (const std::string& word : words) {
    text += word + " ";
  }
  return text;
}

bool is_refused(const Finished& end)
{
  return end.code == 78 && count(end.err, "\n") == 1 && has(end.err, "choose another name");
}

}  // namespace

SERVER_CASE("companion names: no verb takes a lock whose name begins like a key that lies beside a lock")
{
  const std::filesystem::path ran = make_temp_dir("companion") / "ran";
  const Words job{"touch", ran.string()};
  for (const std::string key :
       {"rlock:holder:{a}", "rlock:quorum", "rlock:", "redisson_lock_token:{a}", "redisson_lock_token:"}) {
    for (const Words& words : ways_to_take(key)) {
      CAPTURE(shown(words));
      const Finished end = run_rlock(complete(words, server, job));
      CHECK_MESSAGE(is_refused(end), end.code, end.err);
    }
  }
  for (const Words& nowhere : std::vector<Words>{{"-S", "redis+cluster://127.0.0.1:1"},
                                                 {"-S", "redis+sentinel://127.0.0.1:1/main"},
                                                 {"-S", "redis://127.0.0.1:1", "-S", "redis://127.0.0.1:2"}}) {
    const Words words = joined(joined({"run"}, nowhere), {"-k", "rlock:holder:{a}", "--", "true"});
    CAPTURE(shown(words));
    CHECK(is_refused(run_rlock(words)));
  }
  CHECK_FALSE(std::filesystem::exists(ran));
  CHECK(as_texts(server.command({"KEYS", "rlock:*"})).empty());
}

SERVER_CASE("companion names: what counts is the whole name, with the prefix and the number of the shard")
{
  const Words job{"true"};
  for (const Words& words :
       std::vector<Words>{{"run", "--prefix", "rlock:", "-k", "holder:{a}"},
                          {"run", "--prefix", "rl", "-k", "ock:holder:{a}"},
                          {"flock", "--prefix", "redisson_lock_token:", "{a}"},
                          {"run", "--shards", "2", "-k", "rlock"},
                          {"acquire", "--lease", "1m", "--export", "--shards", "2", "rlock"},
                          {"acquire", "--lease", "1m", "--export", "--shards", "2", "redisson_lock_token"}}) {
    CAPTURE(shown(words));
    const Finished end = run_rlock(complete(words, server, job));
    CHECK_MESSAGE(is_refused(end), end.code, end.err);
  }
  for (const Words& words : std::vector<Words>{{"run", "-k", "rlock"},
                                               {"run", "--prefix", "app:", "-k", "rlock:holder:{a}"},
                                               {"run", "-k", "Rlock:a"},
                                               {"flock", "redisson_lock_token"}}) {
    CAPTURE(shown(words));
    CHECK(run_rlock(complete(words, server, job)).code == 0);
  }
}

SERVER_CASE("companion names: a lock that has such a name already can be looked at, released and broken")
{
  const std::string key = "rlock:old";
  const std::string token = "6f2b1a7e-0000-4000-8000-000000000001:1";
  const auto take = [&] {
    server.command({"HSET", key, token, "1"});
    server.command({"PEXPIRE", key, "60000"});
  };
  take();
  CHECK(rlock_on(server, {"status", key}).code == 0);
  CHECK(rlock_on(server, {"ttl", key}).code == 0);
  CHECK(rlock_on(server, {"wait", "-w", "0", key}).code == 75);
  CHECK(rlock_on(server, {"check", "--token", token, key}).code == 0);
  CHECK(rlock_on(server, {"release", "--token", token, key}).code == 0);
  CHECK(as_int(server.command({"EXISTS", key})) == 0);
  take();
  CHECK(rlock_on(server, {"force-unlock", "--now", "--yes", "-k", key}).code == 0);
  CHECK(as_int(server.command({"EXISTS", key})) == 0);
}
