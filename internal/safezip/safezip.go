// Package safezip opens zip archives that may be hostile. Everything that can be known from the directory is checked before any member
// is read: names that climb out, duplicates, links, encryption, overlapping members, sizes that no compressor could reach.
package safezip

import (
	"archive/zip"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"slices"
	"strconv"
	"strings"
)

const (
	// maxMembers bounds the directory: a reader that lists members must stay small.
	maxMembers = 1 << 20
	// maxRatio is above what deflate can reach (1032:1); a declared size beyond it is a lie.
	maxRatio = 1040
	// freeTotal and totalRatio bound what an archive may inflate to in all: max(freeTotal, totalRatio * file size).
	freeTotal  = 1 << 30
	totalRatio = 100
)

// Archive is a checked zip archive.
type Archive struct {
	Files  []*zip.File // in directory order
	byName map[string]*zip.File
	r      io.ReaderAt
}

// Open reads and checks the directory of a zip archive of size bytes. Errors name the member; the caller adds the file.
func Open(r io.ReaderAt, size int64) (*Archive, error) {
	if size == 0 {
		return nil, errors.New("the file is empty")
	}
	z, err := zip.NewReader(r, size)
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) {
		return nil, fmt.Errorf("not a usable zip archive (%w): it may be cut off or damaged; write it again", err)
	}
	if len(z.File) > maxMembers {
		return nil, fmt.Errorf("%d members are more than the %d that are read", len(z.File), maxMembers)
	}
	a := &Archive{Files: z.File, byName: make(map[string]*zip.File, len(z.File)), r: r}
	var total uint64
	for _, f := range z.File {
		if err := checkMember(f); err != nil {
			return nil, fmt.Errorf("member %s: %w", quote(f.Name), err)
		}
		if a.byName[f.Name] != nil {
			return nil, fmt.Errorf("member %s appears twice: which one is meant is unclear; write the archive again", quote(f.Name))
		}
		a.byName[f.Name] = f
		if total += f.UncompressedSize64; total > math.MaxInt64 {
			return nil, errors.New("the members' sizes add up to more than 64 bits hold")
		}
	}
	if limit := max(freeTotal, totalRatio*uint64(size)); total > limit {
		return nil, fmt.Errorf("the members inflate to %d bytes, more than the limit of %d for a file of %d bytes: store them uncompressed", total, limit, size)
	}
	return a, checkOverlap(z.File, size)
}

func checkMember(f *zip.File) error {
	switch name := f.Name; {
	case name == "":
		return errors.New("the name is empty")
	case strings.ContainsAny(name, "\\\x00"):
		return errors.New("the name holds a backslash or NUL; write the archive again with forward slashes")
	case strings.HasPrefix(name, "/"), len(name) > 1 && name[1] == ':':
		return errors.New("the name is absolute; names must be relative")
	case slices.Contains(strings.Split(name, "/"), ".."):
		return errors.New("the name climbs out of the archive (..)")
	case f.Mode()&fs.ModeSymlink != 0:
		return errors.New("it is a symbolic link; only plain files are read")
	case f.Flags&1 != 0:
		return errors.New("it is encrypted; write the archive again without a password")
	}
	switch f.Method {
	case zip.Store:
		if f.CompressedSize64 != f.UncompressedSize64 {
			return fmt.Errorf("it is stored, but its two sizes differ (%d and %d)", f.CompressedSize64, f.UncompressedSize64)
		}
	case zip.Deflate:
		if f.UncompressedSize64/maxRatio > f.CompressedSize64 {
			return fmt.Errorf("%d bytes cannot inflate to %d", f.CompressedSize64, f.UncompressedSize64)
		}
	default:
		return fmt.Errorf("compression method %d is not supported; use stored or deflated", f.Method)
	}
	return nil
}

// checkOverlap refuses members that share bytes: such archives blow a small file up without bound.
func checkOverlap(files []*zip.File, size int64) error {
	type span struct {
		from, to int64
		name     string
	}
	spans := make([]span, 0, len(files))
	for _, f := range files {
		from, err := f.DataOffset()
		if err != nil {
			return fmt.Errorf("member %s: its header is damaged; write the archive again", quote(f.Name))
		}
		if from < 0 || f.CompressedSize64 > uint64(size) || from > size-int64(f.CompressedSize64) {
			return fmt.Errorf("member %s: its data lies outside the file, which may be cut off", quote(f.Name))
		}
		spans = append(spans, span{from, from + int64(f.CompressedSize64), f.Name})
	}
	slices.SortFunc(spans, func(a, b span) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to)) })
	for i := 1; i < len(spans); i++ {
		if a, b := spans[i-1], spans[i]; b.from < a.to || b.from == a.from && a.to != a.from {
			return fmt.Errorf("members %s and %s overlap in the file", quote(a.name), quote(b.name))
		}
	}
	return nil
}

// Lookup finds a member by its exact name, or nil.
func (a *Archive) Lookup(name string) *zip.File { return a.byName[name] }

// Stored gives direct access to an uncompressed member's bytes, or false where it is compressed. Its checksum is not verified.
func (a *Archive) Stored(f *zip.File) (*io.SectionReader, bool) {
	off, err := f.DataOffset()
	if err != nil || f.Method != zip.Store {
		return nil, false
	}
	return io.NewSectionReader(a.r, off, int64(f.UncompressedSize64)), true
}

// ReadAll reads a whole member of at most limit bytes and verifies its length and checksum.
func ReadAll(f *zip.File, limit int64) ([]byte, error) {
	if f.UncompressedSize64 > uint64(limit) {
		return nil, fmt.Errorf("member %s has %d bytes, more than the %d allowed", quote(f.Name), f.UncompressedSize64, limit)
	}
	return ReadRange(f, 0, int64(f.UncompressedSize64))
}

// ReadRange reads n bytes of a member from the given offset on, which must lie within its declared size. It runs through the whole
// member to verify its length and checksum, but keeps no more than the n bytes.
func ReadRange(f *zip.File, offset, n int64) ([]byte, error) {
	r, err := f.Open()
	if err != nil {
		return nil, fmt.Errorf("member %s: %w", quote(f.Name), err)
	}
	defer r.Close()
	data := make([]byte, n)
	_, err = io.CopyN(io.Discard, r, offset)
	if err == nil {
		_, err = io.ReadFull(r, data)
	}
	if err == nil {
		_, err = io.CopyN(io.Discard, r, int64(f.UncompressedSize64)-offset-n)
	}
	if err != nil {
		return nil, fmt.Errorf("member %s: %w", quote(f.Name), Damaged(err))
	}
	if err := AtEnd(r); err != nil {
		return nil, fmt.Errorf("member %s: %w", quote(f.Name), err)
	}
	return data, nil
}

// AtEnd checks that a member's reader has nothing left; reading the end is also what verifies the checksum.
func AtEnd(r io.Reader) error {
	var one [1]byte
	switch n, err := r.Read(one[:]); {
	case n > 0:
		return errors.New("it holds more data than its header declares")
	case err == io.EOF:
		return nil
	case err == nil:
		return errors.New("it does not end")
	default:
		return Damaged(err)
	}
}

// Damaged words a read error for a user.
func Damaged(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("the data ends early; the file may be cut off")
	}
	return fmt.Errorf("the data is damaged (%w)", err)
}

// quote shows a member's name, shortened: names come from the file and may be of any length.
func quote(name string) string {
	if len(name) > 80 {
		name = name[:80] + "…"
	}
	return strconv.Quote(name)
}
