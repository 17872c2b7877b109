package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gtc-project/gtc/runtime/llvm"
)

// report is what doctor finds; its JSON form is printed by --json.
type report struct {
	Version string     `json:"version"`
	Go      string     `json:"go"`
	OS      string     `json:"os"`
	Arch    string     `json:"arch"`
	CPUs    int        `json:"cpus"`
	LLVM    llvmReport `json:"llvm"`
	CUDA    cudaReport `json:"cuda"`
}

type llvmReport struct {
	Found    bool     `json:"found"`
	Path     string   `json:"path,omitempty"`
	Version  string   `json:"version,omitempty"`
	Triple   string   `json:"triple,omitempty"`
	CPU      string   `json:"cpu,omitempty"`
	Features []string `json:"features,omitempty"` // those that matter to generated code
	Problem  string   `json:"problem,omitempty"`
}

type cudaReport struct {
	Found bool     `json:"found"`
	Path  string   `json:"path,omitempty"`
	Tried []string `json:"tried"`
}

func doctorCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:     "doctor",
		Short:   "Say what gtc found on this machine and what to install",
		Example: "  gtc doctor\n  gtc doctor --json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			r := examine()
			if asJSON {
				return printJSON(cmd.OutOrStdout(), r)
			}
			r.print(cmd.OutOrStdout())
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func examine() report {
	r := report{Version: version(), Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH, CPUs: runtime.NumCPU()}
	lib, err := llvm.Load()
	if err != nil {
		r.LLVM.Problem = err.Error()
	} else {
		host := lib.Host()
		r.LLVM = llvmReport{Found: true, Path: lib.Path(), Version: lib.Version().String(), Triple: host.Triple, CPU: host.CPU}
		for _, f := range []string{"avx2", "fma", "f16c", "avx512f", "avx512bw", "avx512vl", "avx512bf16", "amx-tile", "neon", "sve"} {
			if host.HasFeature(f) {
				r.LLVM.Features = append(r.LLVM.Features, f)
			}
		}
	}
	r.CUDA = findCUDA()
	return r
}

// findCUDA looks for the driver library where the dynamic loader would.
func findCUDA() cudaReport {
	dirs := filepath.SplitList(os.Getenv("LD_LIBRARY_PATH"))
	dirs = append(dirs, "/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib", "/usr/lib/wsl/lib", "/usr/local/nvidia/lib64")
	var r cudaReport
	for _, dir := range dirs {
		if dir == "" {
			continue
		}
		path := filepath.Join(dir, "libcuda.so.1")
		r.Tried = append(r.Tried, path)
		if _, err := os.Stat(path); err == nil {
			r.Found, r.Path = true, path
			break
		}
	}
	return r
}

func (r report) print(w io.Writer) {
	fmt.Fprintf(w, "gtc    %s (%s, %s/%s, %d processors)\n", r.Version, r.Go, r.OS, r.Arch, r.CPUs)
	if l := r.LLVM; l.Found {
		fmt.Fprintf(w, "LLVM   %s from %s\n", l.Version, l.Path)
		fmt.Fprintf(w, "       target %s, CPU %s, features %s\n", l.Triple, l.CPU, strings.Join(l.Features, " "))
	} else {
		fmt.Fprintf(w, "LLVM   not found: the reference evaluator runs models, slowly\n")
		fmt.Fprintf(w, "       %s\n", strings.ReplaceAll(l.Problem, "\n", "\n       "))
	}
	if r.CUDA.Found {
		fmt.Fprintf(w, "CUDA   driver library %s\n", r.CUDA.Path)
	} else {
		dirs := make([]string, len(r.CUDA.Tried))
		for i, path := range r.CUDA.Tried {
			dirs[i] = filepath.Dir(path)
		}
		fmt.Fprintf(w, "CUDA   not found: a GPU needs NVIDIA's driver (libcuda.so.1); PTX can be compiled without\n")
		fmt.Fprintf(w, "       tried in %s\n", strings.Join(dirs, ", "))
	}
}

// version is the build's module version, or its revision.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			return "devel-" + s.Value[:12]
		}
	}
	return "devel"
}
