package cache

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// fresh makes a cache over dir with nothing in memory, as a new process would have it.
func fresh(t *testing.T, dir string) *Cache {
	return New(Options{Dir: dir, Warn: func(s string) { t.Error(s) }})
}

func TestKeySeparatesParts(t *testing.T) {
	require.NotEqual(t, MakeKey("ab", "c"), MakeKey("a", "bc"))
	require.NotEqual(t, MakeKey("a"), MakeKey("a", ""))
	require.Equal(t, MakeKey("a", "b"), MakeKey("a", "b"))
}

func TestEntriesSurviveTheProcess(t *testing.T) {
	dir, k := t.TempDir(), MakeKey("k")
	c := fresh(t, dir)
	_, ok := c.Get(k)
	require.False(t, ok)
	c.Put(k, []byte("code"))
	for range 2 {
		data, ok := c.Get(k)
		require.True(t, ok)
		require.Equal(t, "code", string(data))
	}
	require.Equal(t, Stats{MemoryHits: 2, Misses: 1}, c.Stats())
	c = fresh(t, dir)
	data, ok := c.Get(k)
	require.True(t, ok)
	require.Equal(t, "code", string(data))
	require.Equal(t, Stats{DiskHits: 1}, c.Stats())
}

func TestDamagedFilesAreMissesAndRewritten(t *testing.T) {
	k := MakeKey("k")
	good := encode(k, []byte("machine code"))
	flipped := bytes.Clone(good)
	flipped[len(flipped)-1] ^= 1
	for name, file := range map[string][]byte{
		"empty": {}, "cut": good[:len(good)-3], "cut head": good[:20], "flipped": flipped,
		"another key's": encode(MakeKey("other"), []byte("machine code")), "foreign": []byte("hello, world"),
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			c := fresh(t, dir)
			require.NoError(t, os.MkdirAll(filepath.Dir(c.disk.path(k)), 0o700))
			require.NoError(t, os.WriteFile(c.disk.path(k), file, 0o600))
			data, err := c.Do(k, func() ([]byte, error) { return []byte("machine code"), nil })
			require.NoError(t, err)
			require.Equal(t, "machine code", string(data))
			require.Equal(t, 1, c.Stats().Damaged)
			c = fresh(t, dir)
			_, ok := c.Get(k)
			require.True(t, ok, "the file was rewritten")
		})
	}
}

func TestUnusableFolderWarnsOnce(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	var warnings []string
	c := New(Options{Dir: filepath.Join(file, "sub"), Warn: func(s string) { warnings = append(warnings, s) }})
	for i := range 3 {
		k := MakeKey(fmt.Sprint(i))
		c.Put(k, []byte("x"))
		_, ok := c.Get(k)
		require.True(t, ok, "memory still serves")
	}
	require.Len(t, warnings, 1)
	require.Contains(t, warnings[0], "not kept on disk")
}

func TestReadOnlyFolderStillServes(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("root may write everywhere")
	}
	dir, k := t.TempDir(), MakeKey("k")
	fresh(t, dir).Put(k, []byte("code"))
	require.NoError(t, os.Chmod(dir, 0o500))
	defer os.Chmod(dir, 0o700)
	warned := 0
	c := New(Options{Dir: dir, Warn: func(string) { warned++ }})
	_, ok := c.Get(k)
	require.True(t, ok)
	c.Put(MakeKey("new"), []byte("x"))
	c.Put(MakeKey("new2"), []byte("x"))
	require.Equal(t, 1, warned)
}

func TestFolderVanishes(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	c := fresh(t, dir)
	c.Put(MakeKey("a"), []byte("a"))
	require.NoError(t, os.RemoveAll(dir))
	c.Put(MakeKey("b"), []byte("b"))
	_, ok := fresh(t, dir).Get(MakeKey("b"))
	require.True(t, ok)
}

func TestLeastRecentlyUsedFilesGo(t *testing.T) {
	dir := t.TempDir()
	key := func(i int) Key { return MakeKey(fmt.Sprint(i)) }
	c := fresh(t, dir)
	for i := range 10 {
		c.Put(key(i), make([]byte, 1000))
		old := time.Now().Add(time.Duration(i-100) * time.Minute)
		require.NoError(t, os.Chtimes(c.disk.path(key(i)), old, old))
	}
	stray := filepath.Join(dir, "00", tempPrefix+"stray")
	require.NoError(t, os.MkdirAll(filepath.Dir(stray), 0o700))
	require.NoError(t, os.WriteFile(stray, nil, 0o600))
	long := time.Now().Add(-2 * time.Hour)
	require.NoError(t, os.Chtimes(stray, long, long))

	_, ok := fresh(t, dir).Get(key(0)) // the oldest becomes the most recently used
	require.True(t, ok)
	small := New(Options{Dir: dir, DiskSize: 8000})
	small.Put(key(10), make([]byte, 1000))
	require.Equal(t, 5, small.Stats().Evicted)
	after := fresh(t, dir)
	for i, want := range []bool{true, false, false, false, false, false, true, true, true, true, true} {
		_, ok := after.Get(key(i))
		require.Equal(t, want, ok, "entry %d", i)
	}
	require.NoFileExists(t, stray)
}

func TestMemoryIsBounded(t *testing.T) {
	c := New(Options{MemorySize: 2500})
	for i := range 5 {
		c.Put(MakeKey(fmt.Sprint(i)), make([]byte, 1000))
	}
	_, ok := c.Get(MakeKey("4"))
	require.True(t, ok)
	_, ok = c.Get(MakeKey("2"))
	require.False(t, ok)
	require.LessOrEqual(t, c.memory, int64(2500))
}

func TestDoRunsOncePerKey(t *testing.T) {
	c := fresh(t, t.TempDir())
	var made atomic.Int32
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			data, err := c.Do(MakeKey("k"), func() ([]byte, error) {
				made.Add(1)
				time.Sleep(10 * time.Millisecond)
				return []byte("code"), nil
			})
			if err != nil || string(data) != "code" {
				t.Errorf("%q, %v", data, err)
			}
		})
	}
	wg.Wait()
	require.Equal(t, int32(1), made.Load())
	fail := errors.New("no")
	_, err := c.Do(MakeKey("bad"), func() ([]byte, error) { return nil, fail })
	require.ErrorIs(t, err, fail)
	_, err = c.Do(MakeKey("bad"), func() ([]byte, error) { return nil, nil })
	require.NoError(t, err, "an error is not kept")
}

// Several processes write and read the same keys, with a limit that makes them evict each other's files.
func TestConcurrentProcesses(t *testing.T) {
	const env = "GTC_CACHE_TEST_DIR"
	work := func(dir string) {
		for round := range 5 {
			for i := range 20 {
				c := New(Options{Dir: dir, DiskSize: 20000, Warn: func(s string) { t.Error(s) }})
				want := bytes.Repeat([]byte{byte(i)}, 1500)
				got, err := c.Do(MakeKey(fmt.Sprint(i)), func() ([]byte, error) { return want, nil })
				if err != nil || !bytes.Equal(got, want) {
					t.Errorf("round %d entry %d: wrong data, %v", round, i, err)
				}
				if c.Stats().Damaged > 0 {
					t.Errorf("round %d entry %d: a reader saw a damaged file", round, i)
				}
			}
		}
	}
	if dir := os.Getenv(env); dir != "" {
		work(dir)
		return
	}
	dir := t.TempDir()
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			cmd := exec.Command(os.Args[0], "-test.run=^TestConcurrentProcesses$")
			cmd.Env = append(os.Environ(), env+"="+dir)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
	work(dir)
	wg.Wait()
}
