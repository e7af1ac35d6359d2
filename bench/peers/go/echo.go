package main

import (
	"fmt"
	"net"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
)

var totalBytes, totalConnections atomic.Uint64

// echo: a buffer a connection, 32 KiB by default: read, write all, again, as in net/noria_echo.c.
func echo(connection net.Conn, bufferBytes uint64) {
	defer connection.Close()
	buffer := make([]byte, bufferBytes)
	bytes := uint64(0)
	for {
		count, err := connection.Read(buffer)
		if err != nil {
			break // the end of the stream, or the peer's failure
		}
		if _, err = connection.Write(buffer[:count]); err != nil {
			break
		}
		bytes += uint64(count)
	}
	totalBytes.Add(bytes)
}

// serve gives each connection to a goroutine, until SIGTERM.
func serve(handle func(net.Conn)) {
	terminate := make(chan os.Signal, 1)
	signal.Notify(terminate, syscall.SIGTERM)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(err == nil, "a port")
	fmt.Printf("port %d\n", listener.Addr().(*net.TCPAddr).Port)
	go func() {
		for {
			connection, err := listener.Accept() // with TCP_NODELAY, as Go sets it
			check(err == nil, "a connection")
			totalConnections.Add(1)
			go handle(connection)
		}
	}()
	<-terminate
}

func serveEcho(workers uint64) {
	bufferBytes := argument("--buffer", 32*1024)
	serve(func(connection net.Conn) { echo(connection, bufferBytes) })
	fmt.Printf("{\"workload\": \"echo\", \"contender\": \"go\", \"workers\": %d, \"connections\": %d, \"bytes\": %d, \"cpu_ns\": %d}\n",
		workers, totalConnections.Load(), totalBytes.Load(), cpuNs())
}
