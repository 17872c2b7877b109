// Package atomicfile writes files so that a reader sees the old content or the new, never a part: the data goes to a temporary file
// next to the target, is synced, and is renamed over it. On any failure the old file is untouched and the temporary one is removed.
package atomicfile

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
)

// Write calls fill with a buffered writer and puts what it wrote at path. A symbolic link at path is followed, so that the link stays
// and its target changes; devices and pipes (/dev/stdout) are written directly. The mode of an existing file is kept.
func Write(path string, fill func(w io.Writer) error) error {
	mode, special := fs.FileMode(0o666), false
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
		info, err := os.Stat(path)
		switch {
		case err != nil:
			return fmt.Errorf("cannot write %s: %w", path, err)
		case info.IsDir():
			return fmt.Errorf("cannot write %s: it is a folder; give a file name inside it", path)
		}
		special = !info.Mode().IsRegular()
		mode = info.Mode().Perm()
	}
	if special {
		return writeDirect(path, fill)
	}
	return writeRenamed(path, mode, fill)
}

// WriteBytes is Write for data that is already in memory.
func WriteBytes(path string, data []byte) error {
	return Write(path, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

func writeDirect(path string, fill func(w io.Writer) error) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("cannot write %s: %w", path, err)
	}
	if err := errors.Join(fillBuffered(f, fill), f.Close()); err != nil {
		return fmt.Errorf("cannot write %s: %w", path, err)
	}
	return nil
}

func writeRenamed(path string, mode fs.FileMode, fill func(w io.Writer) error) (err error) {
	f, err := createBeside(path, mode)
	if err != nil {
		return fmt.Errorf("cannot write %s: %w", path, bare(err))
	}
	// A panic in fill must not leave the temporary file behind either.
	done := false
	defer func() {
		if !done {
			f.Close()
			os.Remove(f.Name())
		}
	}()
	if err := fillBuffered(f, fill); err != nil {
		return fmt.Errorf("cannot write %s: %w", path, bare(err))
	}
	if err := f.Sync(); err != nil {
		return fmt.Errorf("cannot write %s: %w", path, bare(err))
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("cannot write %s: %w", path, bare(err))
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return fmt.Errorf("cannot write %s: %w", path, bare(err))
	}
	done = true
	syncFolder(filepath.Dir(path))
	return nil
}

// createBeside opens a new file in path's folder; the umask applies as for any file that a program makes.
func createBeside(path string, mode fs.FileMode) (*os.File, error) {
	dir, base := filepath.Split(path)
	for range 100 {
		name := fmt.Sprintf("%s.%s.tmp-%08x", dir, base, rand.Uint32())
		f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
		if !errors.Is(err, fs.ErrExist) {
			return f, err
		}
	}
	return nil, errors.New("no free name for a temporary file beside it")
}

func fillBuffered(f *os.File, fill func(w io.Writer) error) error {
	w := bufio.NewWriterSize(f, 1<<16)
	if err := fill(w); err != nil {
		return err
	}
	return w.Flush()
}

// syncFolder makes the rename durable. Some file systems refuse to sync folders; the data itself is safe by then.
func syncFolder(dir string) {
	d, err := os.Open(dir)
	if err != nil {
		return
	}
	_ = d.Sync()
	_ = d.Close()
}

// bare drops the temporary file's name from an error: the user knows only the target.
func bare(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	var link *os.LinkError
	if errors.As(err, &link) {
		return link.Err
	}
	return err
}
