// Command gtc compiles, runs and inspects models: see `gtc -h` and each command's own -h.
//
// One file per command; what commands share (reading a MODEL, its options, the exit codes) is in root.go and options.go, and what they
// do with a model is in internal/driver, where tests call it too.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := Main(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}
