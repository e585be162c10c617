// SPDX-License-Identifier: Apache-2.0
// Redisson's kinds of lock behind one interface.
import java.util.HashMap;
import java.util.Map;
import java.util.List;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import org.redisson.api.RLock;
import org.redisson.api.RPermitExpirableSemaphore;
import org.redisson.api.RedissonClient;

final class Locks {
  interface Lock {
    // wait -1: for ever; lease -1: renewed by the watchdog.
    boolean lock(long wait, long lease) throws Exception;

    void unlock() throws Exception;

    boolean forceUnlock() throws Exception;
  }

  private static final long LONGEST_WAIT = 3_600_000;
  private static final long PERMIT_LEASE = 60_000;  // a permit has no watchdog

  private final List<RedissonClient> clients;
  private final Map<String, Lock> permits = new ConcurrentHashMap<>();

  Locks(List<RedissonClient> clients) {
    this.clients = clients;
  }

  Lock of(String kind, String key) throws Exception {
    RedissonClient client = clients.get(0);
    switch (kind) {
      case "plain":
        return wrap(client.getLock(key));
      case "fenced":  // not in Redisson 3.16, so not by name
        return wrap((RLock) RedissonClient.class.getMethod("getFencedLock", String.class).invoke(client, key));
      case "fair":
        return wrap(client.getFairLock(key));
      case "read":
        return wrap(client.getReadWriteLock(key).readLock());
      case "write":
        return wrap(client.getReadWriteLock(key).writeLock());
      case "multi":
        return wrap(client.getMultiLock(clients.stream().map(one -> one.getLock(key)).toArray(RLock[]::new)));
      case "permits":
        return permits.computeIfAbsent(key, name -> wrap(client.getPermitExpirableSemaphore(name)));
      default:
        throw new IllegalArgumentException(kind);
    }
  }

  boolean setPermits(String key, int number) {
    return clients.get(0).getPermitExpirableSemaphore(key).trySetPermits(number);
  }

  private static Lock wrap(RLock lock) {
    return new Lock() {
      @Override
      public boolean lock(long wait, long lease) throws Exception {
        return lock.tryLock(wait < 0 ? LONGEST_WAIT : wait, lease, TimeUnit.MILLISECONDS);
      }

      @Override
      public void unlock() {
        lock.unlock();
      }

      @Override
      public boolean forceUnlock() {
        return lock.forceUnlock();
      }
    };
  }

  // A permit has an id instead of a thread; each thread keeps its own.
  private static Lock wrap(RPermitExpirableSemaphore semaphore) {
    ThreadLocal<String> id = new ThreadLocal<>();
    return new Lock() {
      @Override
      public boolean lock(long wait, long lease) throws Exception {
        id.set(semaphore.tryAcquire(wait < 0 ? LONGEST_WAIT : wait, lease < 0 ? PERMIT_LEASE : lease, TimeUnit.MILLISECONDS));
        return id.get() != null;
      }

      @Override
      public void unlock() {
        semaphore.release(id.get());
      }

      @Override
      public boolean forceUnlock() {
        return semaphore.delete();
      }
    };
  }
}
