// SPDX-License-Identifier: Apache-2.0
// Driver WATCHDOG_MS URL [URL URL]: takes and releases Redisson's locks as its standard input says.
//
// A line is ID THREAD VERB KIND KEY [ARG...]. Each THREAD is a thread of its own, because a lock belongs to a thread. The
// answer is ID TIME WORD..., with the time in nanoseconds (CLOCK_MONOTONIC) at which the call returned. The verbs:
//   lock KIND KEY WAIT_MS LEASE_MS       WAIT_MS -1: for ever. LEASE_MS -1: the watchdog renews. held | busy
//   unlock KIND KEY                      released TIME_BEFORE_THE_CALL
//   force KIND KEY                       forceUnlock: true | false
//   permits KIND KEY N                   trySetPermits
//   loop KIND KEY DIR WHO HOLD_MS        one Section after the other until DIR/stop exists: done TURNS
// An exception is answered by: error CLASS MESSAGE.
//
// Driver WATCHDOG_MS URL -- KEY JOB...: runs a job under a lock, for tests/bench.
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.redisson.Redisson;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;

public final class Driver {
  private static final Map<String, ExecutorService> threads = new ConcurrentHashMap<>();

  public static void main(String[] args) throws Exception {
    if (args.length > 3 && args[2].equals("--")) {
      System.exit(runJob(connect(args[1], Long.parseLong(args[0])), Arrays.asList(args).subList(3, args.length)));
    }
    List<RedissonClient> clients = new ArrayList<>();
    for (String url : Arrays.asList(args).subList(1, args.length)) {
      clients.add(connect(url, Long.parseLong(args[0])));
    }
    Locks locks = new Locks(clients);
    System.out.println("0 " + System.nanoTime() + " ready");
    BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
    for (String line = input.readLine(); line != null; line = input.readLine()) {
      String[] words = line.split(" ");
      threads.computeIfAbsent(words[1], name -> Executors.newSingleThreadExecutor())
          .execute(() -> answer(locks, words));
    }
    System.exit(0);
  }

  private static int runJob(RedissonClient client, List<String> words) throws Exception {
    RLock lock = client.getLock(words.get(0));
    lock.lock();
    try {
      return new ProcessBuilder(words.subList(1, words.size())).inheritIO().start().waitFor();
    } finally {
      lock.unlock();
    }
  }

  private static RedissonClient connect(String url, long watchdog) {
    Config config = new Config();
    config.setLockWatchdogTimeout(watchdog).setThreads(4).setNettyThreads(4);
    config.useSingleServer().setAddress(url).setClientName("java").setConnectionMinimumIdleSize(1)
        .setConnectionPoolSize(8).setSubscriptionConnectionMinimumIdleSize(1).setSubscriptionConnectionPoolSize(2);
    return Redisson.create(config);
  }

  private static void answer(Locks locks, String[] words) {
    String answer;
    try {
      answer = run(locks, words[2], words[3], words[4], Arrays.copyOfRange(words, 5, words.length));
    } catch (Exception problem) {
      answer = "error " + problem.getClass().getSimpleName() + " " + problem.getMessage();
    }
    long now = System.nanoTime();
    System.out.println(words[0] + " " + now + " " + answer.replace('\n', ' '));
  }

  private static String run(Locks locks, String verb, String kind, String key, String[] args) throws Exception {
    Locks.Lock lock = locks.of(kind, key);
    switch (verb) {
      case "lock":
        return lock.lock(Long.parseLong(args[0]), Long.parseLong(args[1])) ? "held" : "busy";
      case "unlock":
        long before = System.nanoTime();
        lock.unlock();
        return "released " + before;
      case "force":
        return "" + lock.forceUnlock();
      case "permits":
        return "" + locks.setPermits(key, Integer.parseInt(args[0]));
      case "loop":
        return "done " + loop(lock, Path.of(args[0], "stop"), new Section(args[0], args[1], kind), Long.parseLong(args[2]));
      default:
        throw new IllegalArgumentException(verb);
    }
  }

  private static int loop(Locks.Lock lock, Path stop, Section section, long hold) throws Exception {
    int turns = 0;
    while (!Files.exists(stop)) {
      if (!lock.lock(-1, -1)) {
        throw new IllegalStateException("not locked");
      }
      section.run(hold);
      lock.unlock();
      turns++;
    }
    return turns;
  }
}
