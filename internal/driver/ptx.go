package driver

import (
	"errors"

	"github.com/gtc-project/gtc/codegen/ptx"
)

// ptx is the model as PTX text for the architecture that the options name. It needs a signature.
func (m *Model) ptx(o *Options, e *Emit) (string, error) {
	if o.Target != "" && o.Target != TargetCUDA {
		return "", errors.New("--emit=ptx goes with --target=cuda")
	}
	if len(o.Input) == 0 && o.Inputs == "" {
		return "", errors.New("--emit=ptx needs a signature: give --input NAME=f32[2,3] for every tensor, or --inputs FILE.npz")
	}
	f, err := m.shape(o, e.Passes, e.observe())
	if err != nil {
		return "", err
	}
	if e.Passes == "" && !e.observing() {
		if f, err = runPasses(f.Clone(), "", e.observe()); err != nil {
			return "", err
		}
	}
	arch := o.Arch
	if arch == "native" {
		arch = ptx.DefaultArch
	}
	return ptx.Module(f, arch)
}
