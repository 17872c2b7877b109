// Package cache keeps compiled kernels, in memory and on disk, under the hash of everything that decides their bytes.
//
// The cache only ever saves time: a damaged, foreign, half-written or missing file is a miss and is written anew, and a folder that
// cannot be used costs one warning. Any number of processes may share a folder: a file appears under its name by a rename, complete.
package cache

import (
	"bytes"
	"container/list"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"sync"
)

// Key identifies an entry.
type Key [sha256.Size]byte

// MakeKey hashes parts; where one part ends and the next begins counts.
func MakeKey(parts ...string) Key {
	h := sha256.New()
	var n [8]byte
	for _, p := range parts {
		binary.LittleEndian.PutUint64(n[:], uint64(len(p)))
		h.Write(n[:])
		h.Write([]byte(p))
	}
	return Key(h.Sum(nil))
}

// String is the key in hexadecimal, which is also its file's name.
func (k Key) String() string { return hex.EncodeToString(k[:]) }

// Default sizes, in bytes.
const (
	DefaultDiskSize   = 512 << 20
	DefaultMemorySize = 64 << 20
)

// Options configure New.
type Options struct {
	Dir        string       // folder for the files; "" keeps everything in memory
	DiskSize   int64        // the folder is trimmed to this many bytes, least recently used first; 0 means DefaultDiskSize
	MemorySize int64        // 0 means DefaultMemorySize
	Warn       func(string) // told once when the folder cannot be used; nil writes to standard error
}

// Stats counts what happened since New.
type Stats struct {
	MemoryHits, DiskHits, Misses, Damaged, Evicted int
}

// Cache is safe for concurrent use.
type Cache struct {
	opt      Options
	warnOnce sync.Once

	mu      sync.Mutex
	stats   Stats
	entries map[Key]*list.Element // of memEntry
	recent  list.List             // most recently used first
	memory  int64
	flights map[Key]*flight

	disk disk
}

type memEntry struct {
	key  Key
	data []byte
}

// flight is one computation that several callers may wait for.
type flight struct {
	done chan struct{}
	data []byte
	err  error
}

// New makes a cache. It touches the disk at first use only.
func New(o Options) *Cache {
	if o.DiskSize == 0 {
		o.DiskSize = DefaultDiskSize
	}
	if o.MemorySize == 0 {
		o.MemorySize = DefaultMemorySize
	}
	if o.Warn == nil {
		o.Warn = func(s string) { fmt.Fprintln(os.Stderr, s) }
	}
	c := &Cache{opt: o, entries: map[Key]*list.Element{}, flights: map[Key]*flight{}}
	c.disk = disk{dir: o.Dir, limit: o.DiskSize, total: -1}
	return c
}

// Default is the process's cache, in the folder gtc of the user's cache folder.
var Default = sync.OnceValue(func() *Cache {
	c := New(Options{})
	base, err := os.UserCacheDir()
	if err != nil {
		c.warn(err)
		return c
	}
	c.disk.dir = filepath.Join(base, "gtc")
	return c
})

func (c *Cache) warn(err error) {
	c.warnOnce.Do(func() {
		c.opt.Warn(fmt.Sprintf("gtc: compiled kernels are not kept on disk: %v", err))
	})
}

// Stats gives the counts so far.
func (c *Cache) Stats() Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stats
}

// Get finds an entry. The bytes are shared: they must not be changed.
func (c *Cache) Get(k Key) ([]byte, bool) {
	c.mu.Lock()
	if e, ok := c.entries[k]; ok {
		c.recent.MoveToFront(e)
		c.stats.MemoryHits++
		data := e.Value.(memEntry).data
		c.mu.Unlock()
		return data, true
	}
	c.mu.Unlock()
	data, state, err := c.disk.read(k)
	if err != nil {
		c.warn(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch state {
	case found:
		c.stats.DiskHits++
		c.remember(k, data)
		return data, true
	case damaged:
		c.stats.Damaged++
	}
	c.stats.Misses++
	return nil, false
}

// Put stores an entry. The bytes must not be changed afterwards.
func (c *Cache) Put(k Key, data []byte) {
	c.mu.Lock()
	c.remember(k, data)
	c.mu.Unlock()
	evicted, err := c.disk.write(k, data)
	if err != nil {
		c.warn(err)
	}
	c.mu.Lock()
	c.stats.Evicted += evicted
	c.mu.Unlock()
}

// Do gets an entry, or makes and stores it. Concurrent callers with the same key share one call of produce; an error is not kept.
func (c *Cache) Do(k Key, produce func() ([]byte, error)) ([]byte, error) {
	if data, ok := c.Get(k); ok {
		return data, nil
	}
	c.mu.Lock()
	if f, ok := c.flights[k]; ok {
		c.mu.Unlock()
		<-f.done
		return f.data, f.err
	}
	if e, ok := c.entries[k]; ok { // a flight ended after the look above
		c.mu.Unlock()
		return e.Value.(memEntry).data, nil
	}
	f := &flight{done: make(chan struct{}), err: fmt.Errorf("cache: making entry %v did not finish", k)}
	c.flights[k] = f
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		delete(c.flights, k)
		c.mu.Unlock()
		close(f.done)
	}()
	f.data, f.err = produce()
	if f.err == nil {
		c.Put(k, f.data)
	}
	return f.data, f.err
}

// remember puts data into memory and forgets the oldest entries beyond the limit; c.mu is held.
func (c *Cache) remember(k Key, data []byte) {
	if e, ok := c.entries[k]; ok {
		c.memory += int64(len(data) - len(e.Value.(memEntry).data))
		e.Value = memEntry{k, data}
		c.recent.MoveToFront(e)
	} else {
		c.entries[k] = c.recent.PushFront(memEntry{k, data})
		c.memory += int64(len(data))
	}
	for c.memory > c.opt.MemorySize && c.recent.Len() > 1 {
		last := c.recent.Back()
		old := c.recent.Remove(last).(memEntry)
		delete(c.entries, old.key)
		c.memory -= int64(len(old.data))
	}
}

// A file is magic, key, checksum of the data, data.
var magic = []byte("gtc-kernel-1\n")

// encode makes a file's bytes.
func encode(k Key, data []byte) []byte {
	sum := sha256.Sum256(data)
	return bytes.Join([][]byte{magic, k[:], sum[:], data}, nil)
}

// decode checks a file's bytes and returns the data.
func decode(k Key, file []byte) ([]byte, bool) {
	head := len(magic) + len(k) + sha256.Size
	if len(file) < head || !bytes.HasPrefix(file, magic) || !bytes.Equal(file[len(magic):len(magic)+len(k)], k[:]) {
		return nil, false
	}
	data := file[head:]
	sum := sha256.Sum256(data)
	return data, bytes.Equal(sum[:], file[len(magic)+len(k):head])
}
