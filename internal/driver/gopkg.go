package driver

import (
	"errors"

	"github.com/gtc-project/gtc/ir"
)

func (m *Model) writeGo(output string, f *ir.Func) error {
	return errors.New("--emit=go is not available yet in this version")
}
