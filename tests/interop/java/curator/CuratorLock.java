// SPDX-License-Identifier: Apache-2.0
import java.util.Arrays;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.retry.ExponentialBackoffRetry;

/**
 * CuratorLock CONNECT-STRING SESSION-MS PATH CMD...: runs CMD under an InterProcessMutex of Curator. With the system property kind=read
 * or kind=write it is that lock of an InterProcessReadWriteLock.
 */
public class CuratorLock {
  static InterProcessMutex lockOf(CuratorFramework client, String path, String kind) {
    if (kind.equals("mutex")) {
      return new InterProcessMutex(client, path);
    }
    InterProcessReadWriteLock lock = new InterProcessReadWriteLock(client, path);
    return kind.equals("read") ? lock.readLock() : lock.writeLock();
  }

  public static void main(String[] args) throws Exception {
    int session = Integer.parseInt(args[1]);
    CuratorFramework client =
        CuratorFrameworkFactory.newClient(args[0], session, 15_000, new ExponentialBackoffRetry(100, 10));
    client.start();
    InterProcessMutex mutex = lockOf(client, args[2], System.getProperty("kind", "mutex"));
    mutex.acquire();
    int code;
    try {
      code = new ProcessBuilder(Arrays.asList(args).subList(3, args.length)).inheritIO().start().waitFor();
    } finally {
      mutex.release();
    }
    client.close();
    System.exit(code);
  }
}
