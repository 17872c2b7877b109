package cache

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// disk is the folder of files. Its methods never fail in a way that matters: errors are for one warning.
type disk struct {
	dir   string
	limit int64

	mu    sync.Mutex
	total int64 // bytes in the folder as far as this process knows; -1 before the first scan
	off   bool  // the folder cannot be written
}

type state uint8

const (
	missing state = iota
	found
	damaged
)

const tempPrefix = "tmp-"

func (d *disk) path(k Key) string {
	name := k.String()
	return filepath.Join(d.dir, name[:2], name)
}

func (d *disk) read(k Key) ([]byte, state, error) {
	if d.dir == "" {
		return nil, missing, nil
	}
	path := d.path(k)
	file, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, missing, nil
	}
	if err != nil {
		return nil, missing, err
	}
	data, ok := decode(k, file)
	if !ok {
		return nil, damaged, nil
	}
	now := time.Now()
	_ = os.Chtimes(path, now, now) // the file's time says when it was last used; a read-only folder keeps its times
	return data, found, nil
}

// write stores a file and, when the folder has grown too large, removes those not used for the longest time.
func (d *disk) write(k Key, data []byte) (evicted int, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.dir == "" || d.off {
		return 0, nil
	}
	if err := d.replace(d.path(k), encode(k, data)); err != nil {
		d.off = true
		return 0, err
	}
	if d.total >= 0 {
		d.total += int64(len(data))
	}
	if d.total < 0 || d.total > d.limit {
		evicted = d.trim()
	}
	return evicted, nil
}

// replace writes a file under a temporary name and renames it, so that no reader ever sees a part of it.
func (d *disk) replace(path string, file []byte) (err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), tempPrefix)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name())
		}
	}()
	_, err = f.Write(file)
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// trim measures the folder and brings it below 90 % of the limit. Other processes may do the same at the same time.
func (d *disk) trim() (evicted int) {
	type entry struct {
		path string
		size int64
		used time.Time
	}
	var entries []entry
	d.total = 0
	_ = filepath.WalkDir(d.dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return nil // what cannot be read is none of ours
		}
		info, err := e.Info()
		if err != nil {
			return nil
		}
		if strings.HasPrefix(e.Name(), tempPrefix) {
			if time.Since(info.ModTime()) > time.Hour {
				_ = os.Remove(path) // left behind by a process that was killed
			}
			return nil
		}
		if len(e.Name()) != 2*len(Key{}) {
			return nil
		}
		entries = append(entries, entry{path, info.Size(), info.ModTime()})
		d.total += info.Size()
		return nil
	})
	if d.total <= d.limit {
		return 0
	}
	slices.SortFunc(entries, func(a, b entry) int { return a.used.Compare(b.used) })
	for _, e := range entries {
		if d.total <= d.limit/10*9 {
			break
		}
		if os.Remove(e.path) == nil {
			evicted++
		}
		d.total -= e.size
	}
	return evicted
}
