// SPDX-License-Identifier: Apache-2.0
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.retry.ExponentialBackoffRetry;

/**
 * CuratorLock CONNECT-STRING SESSION-MS PATH CMD...: runs CMD under an InterProcessMutex of Curator. With the system property kind=read
 * or kind=write it is that lock of an InterProcessReadWriteLock; with kind=both the thread that writes also reads; with kind=downgraded
 * it has begun to read and then stopped to write.
 */
public class CuratorLock {
  static List<InterProcessMutex> take(CuratorFramework client, String path, String kind) throws Exception {
    List<InterProcessMutex> taken = new ArrayList<>();
    InterProcessReadWriteLock lock = new InterProcessReadWriteLock(client, path);
    boolean both = kind.equals("both") || kind.equals("downgraded");
    if (kind.equals("mutex")) {
      taken.add(new InterProcessMutex(client, path));
    }
    if (kind.equals("write") || both) {
      taken.add(lock.writeLock());
    }
    if (kind.equals("read") || both) {
      taken.add(lock.readLock());
    }
    for (InterProcessMutex each : taken) {
      each.acquire();
    }
    if (kind.equals("downgraded")) {
      taken.remove(0).release();
    }
    return taken;
  }

  public static void main(String[] args) throws Exception {
    int session = Integer.parseInt(args[1]);
    CuratorFramework client =
        CuratorFrameworkFactory.newClient(args[0], session, 15_000, new ExponentialBackoffRetry(100, 10));
    client.start();
    List<InterProcessMutex> taken = take(client, args[2], System.getProperty("kind", "mutex"));
    int code;
    try {
      code = new ProcessBuilder(Arrays.asList(args).subList(3, args.length)).inheritIO().start().waitFor();
    } finally {
      for (InterProcessMutex each : taken) {
        each.release();
      }
    }
    client.close();
    System.exit(code);
  }
}
