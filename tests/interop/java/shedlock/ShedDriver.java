// SPDX-License-Identifier: Apache-2.0
// ShedDriver URL: takes and releases ShedLock's locks in the database of that URL, jdbc:… or mongodb:…, as its standard input says. The
// lines and answers are those of ../Driver.java. KIND is `db`, which uses the time of the database, `jvm`, which uses the clock of
// this process, or `mongo`, which does so too. The verbs:
//   lock KIND KEY AT_MOST_MS AT_LEAST_MS     held | busy
//   extend KIND KEY AT_MOST_MS AT_LEAST_MS   held | lost
//   unlock KIND KEY                          released
//   holder mongo KEY                         free | who holds the lock by its document
//   rows mongo -                             the number of documents
//
// ShedDriver URL -- KEY JOB...: runs a job under a lock with the time of the database, for tests/bench. Ends with 75 if it is held.
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.time.Instant;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TimeZone;
import net.javacrumbs.shedlock.core.LockConfiguration;
import net.javacrumbs.shedlock.core.LockProvider;
import net.javacrumbs.shedlock.core.SimpleLock;
import net.javacrumbs.shedlock.provider.jdbctemplate.JdbcTemplateLockProvider;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.jdbc.datasource.DriverManagerDataSource;
import org.springframework.jdbc.datasource.SingleConnectionDataSource;

public final class ShedDriver {
  private final Map<String, LockProvider> providers = new HashMap<>();
  private final Map<String, SimpleLock> held = new HashMap<>();
  private MongoLocks mongo;

  public static void main(String[] args) throws Exception {
    if (args.length > 3 && args[1].equals("--")) {
      System.exit(runJob(args[0], Arrays.asList(args).subList(2, args.length)));
    }
    ShedDriver driver = new ShedDriver(args[0]);
    System.out.println("0 " + System.nanoTime() + " ready");
    BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
    for (String line = input.readLine(); line != null; line = input.readLine()) {
      String[] words = line.split(" ");
      String answer;
      try {
        answer = driver.run(words);
      } catch (Exception problem) {
        answer = "error " + problem.getClass().getSimpleName() + " " + problem.getMessage();
      }
      System.out.println(words[0] + " " + System.nanoTime() + " " + answer.replace('\n', ' '));
    }
    System.exit(0);  // threads of the MongoDB client live on
  }

  private static int runJob(String url, List<String> words) throws Exception {
    LockProvider provider = withDbTime(new JdbcTemplate(new SingleConnectionDataSource(url, true)));
    Optional<SimpleLock> lock = provider.lock(
        new LockConfiguration(Instant.now(), words.get(0), Duration.ofSeconds(30), Duration.ZERO));
    if (!lock.isPresent()) {
      return 75;
    }
    try {
      return new ProcessBuilder(words.subList(1, words.size())).inheritIO().start().waitFor();
    } finally {
      lock.get().unlock();
    }
  }

  private static LockProvider withDbTime(JdbcTemplate template) {
    return new JdbcTemplateLockProvider(
        JdbcTemplateLockProvider.Configuration.builder().withJdbcTemplate(template).usingDbTime().build());
  }

  private ShedDriver(String url) {
    if (url.startsWith("mongodb:")) {
      mongo = new MongoLocks(url);
      providers.put("mongo", mongo.provider());
      return;
    }
    JdbcTemplate template = new JdbcTemplate(new DriverManagerDataSource(url));
    providers.put("db", withDbTime(template));
    providers.put("jvm", new JdbcTemplateLockProvider(JdbcTemplateLockProvider.Configuration.builder()
        .withJdbcTemplate(template).withTimeZone(TimeZone.getTimeZone("UTC")).build()));
  }

  private String run(String[] words) {
    String kind = words[3];
    String key = words[4];
    String place = words[1] + " " + kind + " " + key;
    switch (words[2]) {
      case "lock": {
        Optional<SimpleLock> lock = providers.get(kind).lock(
            new LockConfiguration(Instant.now(), key, millis(words[5]), millis(words[6])));
        lock.ifPresent(taken -> held.put(place, taken));
        return lock.isPresent() ? "held" : "busy";
      }
      case "extend": {
        Optional<SimpleLock> lock = held.remove(place).extend(millis(words[5]), millis(words[6]));
        lock.ifPresent(taken -> held.put(place, taken));
        return lock.isPresent() ? "held" : "lost";
      }
      case "unlock":
        held.remove(place).unlock();
        return "released";
      case "holder":
        return mongo.holder(key).orElse("free");
      case "rows":
        return String.valueOf(mongo.count());
      default:
        throw new IllegalArgumentException(words[2]);
    }
  }

  private static Duration millis(String text) {
    return Duration.ofMillis(Long.parseLong(text));
  }
}
