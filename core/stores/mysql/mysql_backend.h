// SPDX-License-Identifier: Apache-2.0
// Keeps the records of locks in tables of a MySQL (5.7 or newer) or MariaDB (10.5 or newer) database.
//
// A commit is one packet of statements, a transaction that begins and ends in it. So a client that is stopped between two requests
// holds no row.
//
// A message is a row that the commit writes for each listener. The connection of a listener waits in the server, for at most 0.4 s,
// and then looks for its rows. The client that has committed a message ends the wait by KILL QUERY (mysql_listener.h says why). So a
// message arrives at once where both clients are the same user, or the sender may kill, and after 0.4 s at the latest otherwise. A
// listener lives while its connection has a named lock (GET_LOCK), which other connections to the same server see. When its client
// dies, the server notices at the end of the wait. The sender finds the connection to wake by that named lock, so it disturbs no
// other connection.
#pragma once

#include <memory>
#include "base/clock.h"
#include "engine/record_backend.h"
#include "stores/mysql/mysql_url.h"

namespace rlock::mysql {

// Connects at the first request, and makes the tables where they are missing, unless the URL says create=no. `clock` must
// outlive the backend.
std::unique_ptr<record::Backend> open_backend(ConnectionSpec spec, const Clock& clock, std::unique_ptr<Rng> rng);

}  // namespace rlock::mysql
