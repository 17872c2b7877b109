package atomicfile_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gtc-project/gtc/internal/atomicfile"
)

// only checks that dir holds exactly the named files, so no temporary file was left behind.
func only(t *testing.T, dir string, names ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	require.ElementsMatch(t, names, got)
}

func TestWriteReplacesContentAndKeepsMode(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a")
	require.NoError(t, os.WriteFile(path, []byte("old"), 0o600))
	require.NoError(t, atomicfile.WriteBytes(path, []byte("new")))
	got, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "new", string(got))
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.EqualValues(t, 0o600, info.Mode().Perm())
	only(t, dir, "a")
}

func TestFailureLeavesTheOldFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a")
	require.NoError(t, os.WriteFile(path, []byte("old"), 0o644))
	err := atomicfile.Write(path, func(w io.Writer) error {
		_, _ = w.Write(make([]byte, 1<<20))
		return errors.New("no space left on device")
	})
	require.ErrorContains(t, err, path)
	require.ErrorContains(t, err, "no space left")
	got, _ := os.ReadFile(path)
	require.Equal(t, "old", string(got))
	only(t, dir, "a")
}

func TestPanicLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	require.Panics(t, func() {
		_ = atomicfile.Write(filepath.Join(dir, "a"), func(io.Writer) error { panic("x") })
	})
	only(t, dir)
}

func TestSymlinkStays(t *testing.T) {
	dir := t.TempDir()
	target, link := filepath.Join(dir, "target"), filepath.Join(dir, "link")
	require.NoError(t, os.WriteFile(target, nil, 0o644))
	require.NoError(t, os.Symlink(target, link))
	require.NoError(t, atomicfile.WriteBytes(link, []byte("x")))
	info, err := os.Lstat(link)
	require.NoError(t, err)
	require.NotZero(t, info.Mode()&os.ModeSymlink)
	got, _ := os.ReadFile(target)
	require.Equal(t, "x", string(got))
}

func TestFullDeviceIsAnError(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip("this system has no /dev/full")
	}
	require.ErrorContains(t, atomicfile.WriteBytes("/dev/full", []byte("x")), "no space left")
}

func TestMissingFolderAndFolderAsTarget(t *testing.T) {
	dir := t.TempDir()
	require.ErrorContains(t, atomicfile.WriteBytes(filepath.Join(dir, "no", "a"), nil), "no such file")
	require.ErrorContains(t, atomicfile.WriteBytes(dir, nil), "is a folder")
}
