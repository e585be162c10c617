// SPDX-License-Identifier: Apache-2.0
// A critical section of a Java thread, with the same traces as job.cpp: a line when it begins, a line when it ends, and one
// increment of a counter that only the lock protects, unless the lock has several holders.
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;

final class Section {
  private final Path log;
  private final Path counter;
  private final String who;
  private final String mode;

  Section(String directory, String who, String mode) {
    this.log = Path.of(directory, "log");
    this.counter = Path.of(directory, "counter");
    this.who = who;
    this.mode = mode;
  }

  void run(long holdMillis) throws Exception {
    note("+");
    boolean isAlone = !mode.equals("read") && !mode.equals("permits");
    long count = isAlone ? Long.parseLong(Files.readString(counter).trim()) : 0;
    Thread.sleep(holdMillis);
    if (isAlone) {
      Files.writeString(counter, count + 1 + "\n");
    }
    note("-");
  }

  private void note(String sign) throws Exception {
    String line = System.nanoTime() + " " + sign + " " + who + " " + mode + "\n";
    Files.writeString(log, line, StandardOpenOption.CREATE, StandardOpenOption.APPEND);
  }
}
