// SPDX-License-Identifier: Apache-2.0

// A FerretDB for tests, which speaks MongoDB's protocol and keeps its documents in SQLite files. It runs one request at a time,
// because FerretDB 1 finds a document and updates it in two steps, between which the update of another client can come; in
// MongoDB an update is atomic. build.sh builds it inside a copy of FerretDB's source, whose packages are internal.
package main

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"flag"
	"io"
	"log"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/FerretDB/FerretDB/internal/clientconn"
	"github.com/FerretDB/FerretDB/internal/clientconn/connmetrics"
	"github.com/FerretDB/FerretDB/internal/handler/registry"
	"github.com/FerretDB/FerretDB/internal/util/password"
	"github.com/FerretDB/FerretDB/internal/util/state"
)

var (
	directory = flag.String("dir", "", "directory of the data and of the socket behind the proxy")
	tcp       = flag.String("tcp", "", "address to listen on: 127.0.0.1:27017")
	unix      = flag.String("unix", "", "path of a socket to listen on")
	cert      = flag.String("cert", "", "PEM file: listen on -tcp with TLS")
	key       = flag.String("key", "", "PEM file")
	user      = flag.String("user", "", "demand a password; the first user")
	secret    = flag.String("password", "", "the password of -user")
	set       = flag.String("set", "", "name of the replica set")
)

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// Blocks like the database itself: one request is sent and answered before the next one.
var oneAtATime sync.Mutex

// Reads one message: its first four bytes are its length.
func readMessage(from io.Reader) ([]byte, error) {
	head := make([]byte, 4)
	if _, err := io.ReadFull(from, head); err != nil {
		return nil, err
	}
	length := binary.LittleEndian.Uint32(head)
	if length < 16 || length > 64<<20 {
		return nil, io.ErrUnexpectedEOF
	}
	message := make([]byte, length)
	copy(message, head)
	_, err := io.ReadFull(from, message[4:])
	return message, err
}

func answer(request []byte, server net.Conn) ([]byte, error) {
	oneAtATime.Lock()
	defer oneAtATime.Unlock()
	if _, err := server.Write(request); err != nil {
		return nil, err
	}
	return readMessage(server)
}

// The connections of clients, which SIGUSR1 closes.
var clients sync.Map

func closeOnSignal() {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGUSR1)
	for range signals {
		clients.Range(func(client, _ any) bool { client.(net.Conn).Close(); return true })
	}
}

func serve(client net.Conn, behind string) {
	defer client.Close()
	clients.Store(client, true)
	defer clients.Delete(client)
	server, err := net.Dial("unix", behind)
	if err != nil {
		return
	}
	defer server.Close()
	for {
		request, err := readMessage(client)
		if err != nil {
			return
		}
		reply, err := answer(request, server)
		if err != nil {
			return
		}
		if _, err := client.Write(reply); err != nil {
			return
		}
	}
}

func accept(listener net.Listener, behind string) {
	for {
		client, err := listener.Accept()
		must(err)
		go serve(client, behind)
	}
}

func listen(behind string) {
	if *unix != "" {
		os.Remove(*unix)
		listener, err := net.Listen("unix", *unix)
		must(err)
		go accept(listener, behind)
	}
	if *tcp == "" {
		return
	}
	listener, err := net.Listen("tcp", *tcp)
	must(err)
	if *cert != "" {
		pair, err := tls.LoadX509KeyPair(*cert, *key)
		must(err)
		listener = tls.NewListener(listener, &tls.Config{Certificates: []tls.Certificate{pair}})
	}
	go accept(listener, behind)
}

func main() {
	flag.Parse()
	logger := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
	provider, err := state.NewProvider("")
	must(err)
	must(provider.Update(func(s *state.State) { s.DisableTelemetry(); s.TelemetryLocked = true }))
	metrics := connmetrics.NewListenerMetrics()
	options := registry.NewHandlerOpts{
		Logger: logger, ConnMetrics: metrics.ConnMetrics, StateProvider: provider, TCPHost: *tcp, ReplSetName: *set,
		SQLiteURL: "file:" + *directory + "/",
		TestOpts: registry.TestOpts{
			CappedCleanupPercentage: 10, BatchSize: 100, MaxBsonObjectSizeBytes: 16 << 20, EnableNewAuth: *user != "",
		},
	}
	if *user != "" {
		options.SetupDatabase, options.SetupUsername, options.SetupTimeout = "admin", *user, 10*time.Second
		options.SetupPassword = password.WrapPassword(*secret)
	}
	handler, closeBackend, err := registry.NewHandler("sqlite", &options)
	must(err)
	defer closeBackend()
	behind := filepath.Join(*directory, "behind.sock")
	os.Remove(behind)
	listener, err := clientconn.Listen(&clientconn.NewListenerOpts{
		Unix: behind, Mode: clientconn.NormalMode, Metrics: metrics, Handler: handler, Logger: logger,
	})
	must(err)
	go closeOnSignal()
	listen(behind)
	listener.Run(context.Background())
}
