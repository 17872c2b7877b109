package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	godebug "runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gtc-project/gtc/internal/debug"
)

// The exit codes.
const (
	exitOK     = 0
	exitFailed = 1 // the work failed; the message says why
	exitUsage  = 2 // wrong usage; only then usage text is printed
)

// usageError is an error of how the command was called, found while it runs.
type usageError struct{ error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// Main runs the command line and gives the exit code. Results go to stdout, everything else to stderr.
func Main(ctx context.Context, args []string, stdout, stderr io.Writer) (code int) {
	defer func() {
		if r := recover(); r != nil {
			reportPanic(stderr, r)
			code = exitFailed
		}
	}()
	fmt.Fprint(stderr, debug.Notice())
	root := rootCommand()
	out := &checkedWriter{w: stdout}
	stdout = out
	started := false
	root.PersistentPreRun = func(*cobra.Command, []string) { started = true }
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil && out.err != nil {
		err = fmt.Errorf("cannot write the output: %w", out.err)
	}
	if err == nil {
		return exitOK
	}
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		err = errors.New("interrupted")
	}
	fmt.Fprintf(stderr, "gtc: %s\n", strings.TrimSpace(err.Error()))
	var usage usageError
	if !started && out.err == nil || errors.As(err, &usage) {
		fmt.Fprintf(stderr, "\n%s", cmd.UsageString())
		return exitUsage
	}
	return exitFailed
}

// checkedWriter keeps the first error of writing: a command whose output is lost, on a full disk or a closed pipe, has failed.
type checkedWriter struct {
	w   io.Writer
	err error
}

func (c *checkedWriter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	if c.err == nil {
		c.err = err
	}
	return n, err
}

// reportPanic words a bug of ours. The stack is only for those who look for it.
func reportPanic(stderr io.Writer, r any) {
	text := strings.TrimPrefix(fmt.Sprint(r), "BUG: ")
	if len(text) > 2000 {
		text = text[:2000] + "…"
	}
	fmt.Fprintf(stderr, "gtc: internal error: %s\nThis is a bug in gtc. Please report it together with the model and the command line; GTC_DEBUG=stack prints where it happened.\n", text)
	if debug.On("stack") {
		_, _ = stderr.Write(godebug.Stack())
	}
}

func rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:     "gtc",
		Version: version(),
		Short:   "A graph compiler and tracing JIT with PyTorch's semantics",
		Long: `gtc compiles and runs models with PyTorch's semantics: Go code, scripts in TorchScript's subset of Python, its own IR, and packages.

A MODEL is net.py or net.gts (script), net.gtir (IR text), net.gtc (package), or an exported Go function or constructor such as ./models/lenet.New; files
are told apart by content first and name second. Arrays are NumPy's .npy and .npz files.`,
		Example: `  gtc run net.py --inputs in.npz --outputs out.npz
  gtc run net.py --input 'x=f32[2,3]' --input k=2        # random values of a type, and a number
  gtc doctor`,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(*cobra.Command, []string) error {
			return usagef("a command is needed")
		},
	}
	cobra.EnableCommandSorting = false // they are listed as they are added
	root.CompletionOptions.HiddenDefaultCmd = true
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	root.AddCommand(
		runCommand(), benchCommand(), traceCommand(), compileCommand(), serveCommand(), infoCommand(), dotCommand(), bisectCommand(),
		optCommand(), fmtCommand(), opsCommand(), doctorCommand(),
	)
	return root
}

// oneModel demands exactly one positional argument, the model.
func oneModel(_ *cobra.Command, args []string) error {
	switch len(args) {
	case 0:
		return usagef("a MODEL is needed: a .py, .gts, .gtir or .gtc file, or a Go function such as ./models/lenet.New")
	case 1:
		return nil
	}
	return usagef("one MODEL is needed, got %d arguments: %s", len(args), strings.Join(args, " "))
}

// printJSON writes v as indented JSON and a newline.
func printJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
