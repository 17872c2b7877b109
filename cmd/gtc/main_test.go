package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// gtc runs the command line in this process.
func gtc(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = Main(t.Context(), args, &out, &errs)
	require.NotContains(t, errs.String(), "goroutine ", "a stack trace")
	require.NotContains(t, errs.String(), "panic:")
	return code, out.String(), errs.String()
}

// TestEveryCommandHasHelpWithAnExample: -h exits with 0 and prints to standard output.
func TestEveryCommandHasHelpWithAnExample(t *testing.T) {
	for _, c := range rootCommand().Commands() {
		if c.Name() == "help" || c.Name() == "completion" {
			continue
		}
		code, stdout, stderr := gtc(t, c.Name(), "-h")
		require.Equal(t, exitOK, code, c.Name())
		require.Empty(t, stderr)
		require.Contains(t, stdout, "Examples:\n  gtc "+c.Name())
	}
}

// TestWrongUsage: exit status 2, the reason first, then usage text, all on standard error.
func TestWrongUsage(t *testing.T) {
	for args, want := range map[string]string{
		"":                              "a command is needed",
		"nope":                          `unknown command "nope"`,
		"run":                           "a MODEL is needed",
		"run a b":                       "one MODEL is needed, got 2 arguments",
		"run m.py --nope":               "unknown flag: --nope",
		"run m.py --inputs":             "flag needs an argument",
		"run m.py --target tpu":         "the targets are cpu, interp and cuda",
		"run m.py --threads -1":         "must not be negative",
		"run m.py --input x":            "name=FILE.npy",
		"run m.py --dynamic x":          "name:DIM",
		"bench m.py --memory-budget 5Q": `"5Q" is no size`,
		"compile m.py --emit=exe":       "the forms are package, ir",
		"compile m.py --emit=package":   "-o FILE",
		"compile m.py -o net.onnx":      "does not say which form is meant",
		"dot m.py --arch x86-64-v2":     "gtc dot only draws",
		"serve m.py --memory-budget 1":  "gtc bench shows it",
		"run m.py --emulate":            "--emulate goes with --target=cuda",
		"dot m.py --format gif":         "dot, svg and png",
		"fmt":                           "a .gtir file is needed",
		"doctor now":                    `unknown command "now"`,
	} {
		code, stdout, stderr := gtc(t, strings.Fields(args)...)
		require.Equal(t, exitUsage, code, args)
		require.Empty(t, stdout, args)
		require.Contains(t, stderr, "gtc: ", args)
		require.Contains(t, stderr, want, args)
		require.Contains(t, stderr, "Usage:\n  gtc", args)
	}
}

// TestFailures: exit status 1, a message that names the file, and no usage text.
func TestFailures(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(content), 0o644))
		return path
	}
	for _, c := range []struct{ path, want string }{
		{filepath.Join(dir, "missing.py"), "no such file"},
		{dir, "it is a folder"},
		{write("empty.py", ""), "the file is empty"},
		{write("elf", "\x7fELF\x02"), "machine-code file"},
		{write("x.npz", "PK\x05\x06"), "array file"},
		{write("x.gtc", "PK\x05\x06"), "not a valid gtc package"},
		{write("bad.py", "import torch\nx = '\xff'\n"), ":2: error: the file is not valid UTF-8"},
		{write("x.npy", "\x93NUMPY\x01"), "pass it with --input"},
		{write("what", "?"), "no known form of model"},
		{"./models/lenet.New", "./models/lenet.New: the package "},
	} {
		code, stdout, stderr := gtc(t, "run", c.path)
		require.Equal(t, exitFailed, code, c.path)
		require.Empty(t, stdout)
		require.Contains(t, stderr, c.want)
		require.Contains(t, stderr, c.path)
		require.NotContains(t, stderr, "Usage:")
	}
}

// TestPanicsBecomeInternalErrors: a bug of ours is reported as one, without a stack trace.
func TestPanicsBecomeInternalErrors(t *testing.T) {
	var errs bytes.Buffer
	func() {
		defer func() { reportPanic(&errs, recover()) }()
		panic("BUG: two and two is five")
	}()
	require.Contains(t, errs.String(), "gtc: internal error: two and two is five\n")
	require.Contains(t, errs.String(), "report")
	require.NotContains(t, errs.String(), "goroutine")
}

func TestJSON(t *testing.T) {
	for _, args := range [][]string{{"doctor", "--json"}, {"ops", "--json"}, {"ops", "--functions", "--json"}} {
		code, stdout, stderr := gtc(t, args...)
		require.Equal(t, exitOK, code)
		require.Empty(t, stderr)
		require.True(t, json.Valid([]byte(stdout)), args)
	}
	code, _, stderr := gtc(t, "ops", "nope")
	require.Equal(t, exitFailed, code)
	require.Contains(t, stderr, `no op is named "nope"`)
}

// fullDisk refuses every write.
type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

func TestLostOutputIsAnError(t *testing.T) {
	for _, args := range [][]string{{"ops"}, {"ops", "--json"}, {"doctor"}} {
		var errs strings.Builder
		require.Equal(t, exitFailed, Main(context.Background(), args, fullDisk{}, &errs), args)
		require.Contains(t, errs.String(), "no space left on device")
	}
}
