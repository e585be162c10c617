// SPDX-License-Identifier: Apache-2.0
// The collection of ShedLock in MongoDB.
//
// ShedLock writes its conditions as {$and: [{_id: …}, {lockUntil: …}]}. FerretDB 1 does not see the _id inside of $and: where it finds
// no document, it inserts one with an _id of its own, and so grants a lock that is held. So with FerretDB the conditions go to the server
// as {_id: …, lockUntil: …}, which means the same to MongoDB. Everything else is ShedLock's.
import com.mongodb.client.MongoClient;
import com.mongodb.client.MongoClients;
import com.mongodb.client.MongoCollection;
import com.mongodb.client.MongoDatabase;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.util.Date;
import java.util.Optional;
import net.javacrumbs.shedlock.core.LockProvider;
import net.javacrumbs.shedlock.provider.mongo.MongoLockProvider;
import org.bson.BsonDocument;
import org.bson.BsonValue;
import org.bson.Document;
import org.bson.conversions.Bson;

final class MongoLocks {
  private final MongoCollection<Document> collection;
  private final boolean isFerret;

  MongoLocks(String url) {
    MongoClient client = MongoClients.create(url);
    MongoDatabase database = client.getDatabase(new com.mongodb.ConnectionString(url).getDatabase());
    isFerret = client.getDatabase("admin").runCommand(new Document("buildInfo", 1)).containsKey("ferretdbVersion");
    collection = database.getCollection("shedLock");
  }

  LockProvider provider() {
    return new MongoLockProvider(isFerret ? withFlatConditions(collection) : collection);
  }

  Optional<String> holder(String name) {
    Document held = collection.find(new Document("_id", name).append("lockUntil", new Document("$gt", new Date()))).first();
    return Optional.ofNullable(held).map(document -> document.getString("lockedBy"));
  }

  long count() {
    return collection.estimatedDocumentCount();
  }

  @SuppressWarnings("unchecked")
  private static MongoCollection<Document> withFlatConditions(MongoCollection<Document> real) {
    return (MongoCollection<Document>) Proxy.newProxyInstance(
        MongoLocks.class.getClassLoader(), new Class<?>[] {MongoCollection.class}, (proxy, method, arguments) -> {
          if (method.getName().equals("findOneAndUpdate") && arguments[0] instanceof Bson) {
            arguments[0] = flat(((Bson) arguments[0]).toBsonDocument());
          }
          try {
            Object result = method.invoke(real, arguments);
            return result instanceof MongoCollection ? withFlatConditions((MongoCollection<Document>) result) : result;
          } catch (InvocationTargetException problem) {
            throw problem.getCause();
          }
        });
  }

  private static BsonDocument flat(BsonDocument condition) {
    BsonDocument all = new BsonDocument();
    condition.forEach((key, value) -> {
      if (!key.equals("$and")) {
        all.append(key, value);
        return;
      }
      for (BsonValue part : value.asArray()) {
        flat(part.asDocument()).forEach((name, its) -> {
          if (all.put(name, its) != null) {
            throw new IllegalStateException("two conditions on " + name);
          }
        });
      }
    });
    return all;
  }
}
