package main

import (
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gtc-project/gtc/internal/driver"
	"github.com/gtc-project/gtc/internal/serve"
)

func serveCommand() *cobra.Command {
	var listen string
	so := serve.Options{MaxRequest: serve.DefaultMaxRequest}
	c := &cobra.Command{
		Use:   "serve MODEL",
		Short: "Answer inference requests over HTTP (Open Inference Protocol v2)",
		Long: `Answer inference requests over HTTP, in the Open Inference Protocol v2 with JSON tensors: /v2/health/live, /v2/health/ready, /v2/models/NAME,
/v2/models/NAME/ready and /v2/models/NAME/infer. Inputs are the model's parameters by name, outputs are out.0, out.1, … NaN and infinities are the strings
"NaN", "Infinity" and "-Infinity".

Each signature of inputs is compiled at its first request; one that --input or --inputs gives is compiled before the server is ready. At an interrupt
the server takes no new calls, and ends when those that are running are done.`,
		Example: `  gtc serve net.gtc --listen localhost:8080
  curl localhost:8080/v2/models/net/infer -d '{"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 2], "data": [0.5, -1]}]}'`,
		Args: oneModel,
	}
	o := modelFlags(c)
	f := c.Flags()
	f.StringVar(&listen, "listen", "localhost:8080", "the address to listen on; port 0 takes a free one")
	f.StringVar(&so.Name, "name", "", "the model's name in requests (default: the file's name)")
	f.Var((*sizeFlag)(&so.MaxRequest), "max-request", "the largest request")
	f.IntVar(&so.Concurrent, "concurrent", 0, "calls that compute at the same time; others wait (default: one per processor)")
	f.DurationVar(&so.Grace, "grace", serve.DefaultGrace, "how long running calls may go on when the server ends")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		if err := refuse(cmd, "what a call takes depends on its inputs; gtc bench shows it", "memory-budget"); err != nil {
			return err
		}
		if so.Concurrent < 0 || so.Grace < 0 {
			return usageError{errors.New("--concurrent and --grace must not be negative")}
		}
		if so.Name == "" {
			so.Name = modelName(args[0])
		}
		so.Version, so.Log = version(), cmd.ErrOrStderr()
		start := time.Now()
		m, err := driver.NewRunner(cmd.Context(), args[0], o)
		if err != nil {
			return err
		}
		l, err := net.Listen("tcp", listen)
		if err != nil {
			return err
		}
		fmt.Fprintf(cmd.ErrOrStderr(), "gtc: http://%s/v2/models/%s is ready after %.1f s\n", l.Addr(), so.Name, time.Since(start).Seconds())
		return serve.New(m, so).Serve(cmd.Context(), l)
	}
	return c
}

var notInName = regexp.MustCompile(`[^\w.-]+`)

// modelName is net for dir/net.py.
func modelName(path string) string {
	base := filepath.Base(path)
	return notInName.ReplaceAllString(strings.TrimSuffix(base, filepath.Ext(base)), "_")
}
