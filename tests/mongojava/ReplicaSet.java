// SPDX-License-Identifier: Apache-2.0
// ReplicaSet PORT [CERTIFICATE KEY]: mongo-java-server, which speaks MongoDB's protocol and keeps the documents in memory, as the primary server of a
// replica set. Its own change streams do not name the document that an update has changed, so here are others: each update makes
// an event as MongoDB documents it, on which mongo-java-server runs the pipeline of the stream, and a getMore waits for an event.
import de.bwaldvogel.mongo.MongoServer;
import de.bwaldvogel.mongo.MongoVersion;
import de.bwaldvogel.mongo.backend.aggregation.Aggregation;
import de.bwaldvogel.mongo.backend.memory.MemoryBackend;
import de.bwaldvogel.mongo.bson.Document;
import de.bwaldvogel.mongo.oplog.NoopOplog;
import io.netty.channel.Channel;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyFactory;
import java.security.PrivateKey;
import java.security.cert.CertificateFactory;
import java.security.cert.X509Certificate;
import java.security.spec.PKCS8EncodedKeySpec;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

public class ReplicaSet extends MemoryBackend {
  private static final long FIRST_STREAM = 1L << 40;  // other cursors have lower numbers

  private static class Stream {
    Aggregation pipeline;
    String namespace;
    int next;  // the first event that it has not seen
  }

  private int waiting;  // getMores; the monitor guards these three
  private final List<Document> events = new ArrayList<>();  // all of the database
  private final Map<Long, Stream> streams = new HashMap<>();

  @Override
  public Document handleCommand(Channel channel, String database, String command, Document query) {
    if (command.equals("aggregate") && documents(query, "pipeline").get(0).containsKey("$changeStream")) {
      return open(database, query);
    }
    if (command.equals("getMore") && (Long) query.get("getMore") >= FIRST_STREAM) {
      return changes(channel, query);
    }
    if (command.equals("serverStatus")) {  // as much of it as the tests want to know
      synchronized (this) {
        return new Document("changeStreamsOpened", streams.size()).append("changeStreamsWaiting", waiting).append("ok", 1.0);
      }
    }
    if (command.equals("killCursors")) {
      return new Document("ok", 1.0);
    }
    boolean isHello = command.equals("hello") || command.equalsIgnoreCase("isMaster");
    Document answer = isHello ? super.handleCommand(channel, database, "isMaster", new Document("isMaster", 1))
                              : super.handleCommand(channel, database, command, query);
    if (isHello) {
      answer.append("setName", "rs0").append("isWritablePrimary", true);
    }
    if (command.equals("update") && ((Number) answer.get("n")).intValue() > 0) {
      add(database + "." + query.get("update"), documents(query, "updates"), answer.containsKey("upserted"));
    }
    return answer;
  }

  @SuppressWarnings("unchecked")
  private static List<Document> documents(Document of, String key) {
    return (List<Document>) of.get(key);
  }

  private static Document cursor(long id, String namespace, String batch, List<Document> documents) {
    return new Document("cursor", new Document("id", id).append("ns", namespace).append(batch, documents)).append("ok", 1.0);
  }

  private synchronized void add(String namespace, List<Document> updates, boolean isInsert) {
    for (Document update : updates) {
      Document set = (Document) ((Document) update.get("u")).get("$set");
      Document event = new Document("_id", new Document("_data", String.format("%08x", events.size())))
          .append("operationType", isInsert ? "insert" : "update").append("ns", namespace)
          .append("documentKey", new Document("_id", ((Document) update.get("q")).get("_id")));
      if (!isInsert) {
        event.append("updateDescription", new Document("updatedFields", set == null ? new Document() : set.cloneDeeply()));
      }
      events.add(event);
    }
    notifyAll();
  }

  private synchronized Document open(String database, Document query) {
    List<Document> stages = documents(query, "pipeline");
    Stream stream = new Stream();
    stream.pipeline = Aggregation.fromPipeline(stages.subList(1, stages.size()), this::resolveDatabase,
        resolveDatabase(database), null, NoopOplog.get());
    stream.namespace = database + "." + query.get("aggregate");
    stream.next = events.size();
    long id = FIRST_STREAM + streams.size();
    streams.put(id, stream);
    return cursor(id, stream.namespace, "firstBatch", List.of());
  }

  private synchronized Document changes(Channel channel, Document query) {
    long id = (Long) query.get("getMore");
    Stream stream = streams.get(id);
    long until = System.currentTimeMillis() + ((Number) query.get("maxTimeMS")).longValue();
    for (;;) {
      List<Document> batch = stream.pipeline.runStages(events.subList(stream.next, events.size()).stream()
          .filter(event -> event.get("ns").equals(stream.namespace)).map(Document::cloneDeeply));
      stream.next = events.size();
      long left = until - System.currentTimeMillis();
      if (!batch.isEmpty() || left <= 0 || !channel.isActive()) {
        return cursor(id, stream.namespace, "nextBatch", batch);
      }
      waiting += 1;
      try {
        wait(Math.min(left, 100));  // a client that is gone is seen then
      } catch (InterruptedException end) {
        return cursor(id, stream.namespace, "nextBatch", batch);
      } finally {
        waiting -= 1;
      }
    }
  }

  // PEM files; the key is one of an elliptic curve.
  private static void enableTls(MongoServer server, String certificate, String key) throws Exception {
    String text = Files.readString(Path.of(key)).replaceAll("-----[A-Z ]*-----", "").replaceAll("\\s", "");
    PrivateKey secret = KeyFactory.getInstance("EC").generatePrivate(new PKCS8EncodedKeySpec(Base64.getDecoder().decode(text)));
    try (InputStream file = Files.newInputStream(Path.of(certificate))) {
      server.enableSsl(secret, null, (X509Certificate) CertificateFactory.getInstance("X.509").generateCertificate(file));
    }
  }

  public static void main(String[] words) throws Exception {
    System.setProperty("io.netty.eventLoopThreads", "256");  // a getMore occupies one, and each connection gets the next
    ReplicaSet backend = new ReplicaSet();
    backend.version(new MongoVersion() {  // it says at most 4.0, which rlock refuses
      public List<Integer> getVersionArray() { return List.of(4, 4, 0); }
      public int getWireVersion() { return 9; }
    });
    MongoServer server = new MongoServer(backend);
    if (words.length == 3) {
      enableTls(server, words[1], words[2]);
    }
    server.bind("127.0.0.1", Integer.parseInt(words[0]));
  }
}
