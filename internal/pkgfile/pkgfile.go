// Package pkgfile reads and writes .gtc model packages: one zip of
//
//	manifest.json        what the package is (Manifest)
//	model.gtir          the model as IR text
//	weights.safetensors  the values of those parameters that are weights, by name; may be absent
//
// The members are stored, not compressed, so that weights are read straight from the file.
package pkgfile

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"unicode/utf8"

	"github.com/gtc-project/gtc/internal/atomicfile"
	"github.com/gtc-project/gtc/internal/safetensors"
	"github.com/gtc-project/gtc/internal/safezip"
)

// The members' names.
const (
	manifestName = "manifest.json"
	modelName    = "model.gtir"
	weightsName  = "weights.safetensors"
)

const (
	// Version is the package format that is written, and the newest that is read.
	Version = 1

	maxManifest = 1 << 20
	maxModule   = 1 << 28
	maxInflated = 1 << 36
)

// Manifest describes a package.
type Manifest struct {
	Version  int    `json:"version"`            // of the format; 1 where absent
	Producer string `json:"producer,omitempty"` // the program that wrote it
	Source   string `json:"source,omitempty"`   // the model's file name, for messages
	Entry    string `json:"entry"`              // the function to run; the first where empty

	Defaults map[string]string `json:"defaults,omitempty"` // of parameters, as IR text writes values
	Buffers  []string          `json:"buffers,omitempty"`  // the weights that have no gradient
	Updated  int               `json:"updated,omitempty"`  // how many of the last results are new values of buffers
}

// Package is a model package.
type Package struct {
	Manifest Manifest
	Module   string            // IR text
	Weights  *safetensors.File // nil where there are none; valid until Close
	closer   io.Closer
}

// Open opens a package and checks it. Errors name the file and the member.
func Open(path string) (*Package, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("cannot open the package: %w", err)
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s: it is not a regular file", path)
	}
	var p *Package
	if err == nil {
		p, err = New(f, info.Size(), path)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	p.closer = f
	return p, nil
}

// New reads a package of size bytes; name stands for it in messages.
func New(r io.ReaderAt, size int64, name string) (*Package, error) {
	p := &Package{}
	if err := p.read(r, size, name); err != nil {
		return nil, fmt.Errorf("%s: not a valid gtc package: %w", name, err)
	}
	return p, nil
}

func (p *Package) read(r io.ReaderAt, size int64, name string) error {
	z, err := safezip.Open(r, size)
	if err != nil {
		return err
	}
	manifest, err := member(z, manifestName, maxManifest)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(manifest, &p.Manifest); err != nil {
		return fmt.Errorf("member %s: %w", manifestName, err)
	}
	if p.Manifest.Version == 0 {
		p.Manifest.Version = 1
	}
	if v := p.Manifest.Version; v < 1 || v > Version {
		return fmt.Errorf("member %s: format version %d is not supported (versions 1 to %d are); use a newer gtc or make the package again", manifestName, v, Version)
	}
	module, err := member(z, modelName, maxModule)
	if err != nil {
		return err
	}
	if !utf8.Valid(module) {
		return fmt.Errorf("member %s is not UTF-8 text", modelName)
	}
	p.Module = string(module)
	p.Weights, err = weights(z, name)
	return err
}

func member(z *safezip.Archive, name string, limit int64) ([]byte, error) {
	f := z.Lookup(name)
	if f == nil {
		return nil, fmt.Errorf("member %s is missing", name)
	}
	return safezip.ReadAll(f, limit)
}

func weights(z *safezip.Archive, name string) (*safetensors.File, error) {
	f := z.Lookup(weightsName)
	if f == nil {
		return nil, nil
	}
	if s, ok := z.Stored(f); ok {
		return safetensors.NewFile(s, s.Size(), name+":"+weightsName)
	}
	data, err := safezip.ReadAll(f, maxInflated)
	if err != nil {
		return nil, err
	}
	return safetensors.NewFile(bytes.NewReader(data), int64(len(data)), name+":"+weightsName)
}

// Close releases the file; Weights cannot be read afterwards.
func (p *Package) Close() error {
	if p.closer == nil {
		return nil
	}
	return p.closer.Close()
}

// Write makes a package, atomically: a failure leaves the file that was there. The manifest's version is filled in. The bytes depend
// only on the arguments.
func Write(path string, m Manifest, module string, weights []safetensors.Named) error {
	return atomicfile.Write(path, func(w io.Writer) error { return Encode(w, m, module, weights) })
}

// Encode writes a package to w.
func Encode(w io.Writer, m Manifest, module string, weights []safetensors.Named) error {
	if module == "" {
		return errors.New("a package needs a module")
	}
	m.Version = Version
	manifest, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	z := zip.NewWriter(w)
	for _, part := range []struct {
		name string
		data []byte
	}{{manifestName, append(manifest, '\n')}, {modelName, []byte(module)}} {
		m, err := z.CreateHeader(&zip.FileHeader{Name: part.name, Method: zip.Store})
		if err != nil {
			return err
		}
		if _, err := m.Write(part.data); err != nil {
			return err
		}
	}
	if len(weights) > 0 {
		m, err := z.CreateHeader(&zip.FileHeader{Name: weightsName, Method: zip.Store})
		if err != nil {
			return err
		}
		if err := safetensors.Encode(m, weights, nil); err != nil {
			return err
		}
	}
	return z.Close()
}
