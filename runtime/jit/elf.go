package jit

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

const (
	pageSize = 4096
	// maxZeros bounds what an image has beyond the bytes of its object: no kernel comes near, damaged sizes exceed it.
	maxZeros = 1 << 20
)

// segment is a group of sections that share a protection.
type segment uint8

const (
	segCode segment = iota
	segConst
	segData
	numSegments
)

// image is an object laid out for loading: one block of bytes, segments on page boundaries, relocations not yet applied.
type image struct {
	obj     []byte
	file    *elf.File
	symbols []elf.Symbol
	secAt   map[int]uint64    // section index -> offset in the image
	secLen  map[int]uint64    // section index -> size
	segs    [numSegments]span // page-aligned parts of the image
	gotAt   map[uint32]uint64 // symbol index -> offset of its slot in the global offset table
	size    uint64
}

type span struct{ start, end uint64 }

// relocation is one entry of a RELA section, checked to lie within its section.
type relocation struct {
	at     uint64 // offset in the image
	kind   elf.R_X86_64
	symbol uint32
	addend int64
}

// parse reads the object's structure. It does not touch memory beyond obj.
func parse(obj []byte) (im *image, err error) {
	f, err := elf.NewFile(bytes.NewReader(obj))
	if err != nil {
		return nil, fmt.Errorf("jit: not an ELF object: %w", err)
	}
	if f.Class != elf.ELFCLASS64 || f.Data != elf.ELFDATA2LSB || f.Machine != elf.EM_X86_64 || f.Type != elf.ET_REL {
		return nil, fmt.Errorf("jit: want an x86-64 relocatable object, have %v %v %v", f.Class, f.Machine, f.Type)
	}
	for _, s := range f.Sections {
		if s.Flags&elf.SHF_COMPRESSED != 0 {
			return nil, fmt.Errorf("jit: section %s is compressed, which kernels never are", s.Name)
		}
	}
	im = &image{obj: obj, file: f, secAt: map[int]uint64{}, secLen: map[int]uint64{}, gotAt: map[uint32]uint64{}}
	if im.symbols, err = f.Symbols(); err != nil && !errors.Is(err, elf.ErrNoSymbols) {
		return nil, fmt.Errorf("jit: symbol table: %w", err)
	}
	return im, nil
}

// loadable reports whether a section takes part, and in which segment. Unwind tables are left out: nothing unwinds through kernels.
func loadable(s *elf.Section) (segment, bool) {
	if s.Flags&elf.SHF_ALLOC == 0 || s.Size == 0 || s.Name == ".eh_frame" {
		return 0, false
	}
	switch {
	case s.Flags&elf.SHF_EXECINSTR != 0:
		return segCode, true
	case s.Flags&elf.SHF_WRITE != 0:
		return segData, true
	}
	return segConst, true
}

// layout gives every loadable section and every global-offset-table slot its place.
func (im *image) layout(relocs []relocation) error {
	off, limit := uint64(0), uint64(len(im.obj))+maxZeros
	for seg := range numSegments {
		im.segs[seg].start = off
		for i, s := range im.file.Sections {
			if g, ok := loadable(s); !ok || g != seg {
				continue
			}
			align := max(s.Addralign, 1)
			if align&(align-1) != 0 || align > pageSize {
				return fmt.Errorf("jit: section %s has alignment %d", s.Name, align)
			}
			off = (off + align - 1) &^ (align - 1)
			if s.Size > limit || off+s.Size > limit {
				return fmt.Errorf("jit: section %s with %d bytes is too large", s.Name, s.Size)
			}
			im.secAt[i], im.secLen[i] = off, s.Size
			off += s.Size
		}
		if seg == segConst {
			off = im.layoutGOT(off, relocs)
		}
		off = (off + pageSize - 1) &^ (pageSize - 1)
		im.segs[seg].end = off
	}
	im.size = off
	if off == 0 {
		return errors.New("jit: the object holds no code")
	}
	return nil
}

func (im *image) layoutGOT(off uint64, relocs []relocation) uint64 {
	off = (off + 7) &^ 7
	for _, r := range relocs {
		if !viaGOT(r.kind) {
			continue
		}
		if _, have := im.gotAt[r.symbol]; !have {
			im.gotAt[r.symbol] = off
			off += 8
		}
	}
	return off
}

func viaGOT(k elf.R_X86_64) bool {
	return k == elf.R_X86_64_GOTPCREL || k == elf.R_X86_64_GOTPCRELX || k == elf.R_X86_64_REX_GOTPCRELX
}

// rawRelocations reads all RELA sections of loadable sections; places are relative to the section until layout is known.
func (im *image) rawRelocations() (relocs []relocation, sections []int, err error) {
	for _, s := range im.file.Sections {
		if s.Type == elf.SHT_REL {
			return nil, nil, fmt.Errorf("jit: section %s: relocations without addends do not exist on x86-64", s.Name)
		}
		if s.Type != elf.SHT_RELA {
			continue
		}
		if int(s.Info) >= len(im.file.Sections) {
			return nil, nil, fmt.Errorf("jit: section %s relocates section %d, which does not exist", s.Name, s.Info)
		}
		target := im.file.Sections[s.Info]
		if _, ok := loadable(target); !ok {
			continue
		}
		d, err := s.Data()
		if err != nil {
			return nil, nil, fmt.Errorf("jit: section %s: %w", s.Name, err)
		}
		const entry = 24
		if len(d)%entry != 0 {
			return nil, nil, fmt.Errorf("jit: section %s: %d bytes are no whole number of relocations", s.Name, len(d))
		}
		for ; len(d) > 0; d = d[entry:] {
			info := binary.LittleEndian.Uint64(d[8:])
			r := relocation{
				at:     binary.LittleEndian.Uint64(d),
				kind:   elf.R_X86_64(info & math.MaxUint32),
				symbol: uint32(info >> 32),
				addend: int64(binary.LittleEndian.Uint64(d[16:])),
			}
			width := uint64(4)
			if r.kind == elf.R_X86_64_64 || r.kind == elf.R_X86_64_PC64 {
				width = 8
			}
			if target.Size < width || r.at > target.Size-width {
				return nil, nil, fmt.Errorf("jit: section %s: a relocation at %#x lies outside %s", s.Name, r.at, target.Name)
			}
			relocs = append(relocs, r)
			sections = append(sections, int(s.Info))
		}
	}
	return relocs, sections, nil
}

// fill copies the sections' bytes into mem, which is zeroed and im.size long.
func (im *image) fill(mem []byte) error {
	for i, off := range im.secAt {
		s := im.file.Sections[i]
		if s.Type == elf.SHT_NOBITS {
			continue
		}
		d, err := s.Data()
		if err != nil || uint64(len(d)) != s.Size {
			return fmt.Errorf("jit: section %s cannot be read (%d of %d bytes): %v", s.Name, len(d), s.Size, err)
		}
		copy(mem[off:], d)
	}
	return nil
}

// address gives the address of a symbol when the image stands at base.
func (im *image) address(index uint32, base uint64) (uint64, error) {
	if index == 0 || int(index) > len(im.symbols) {
		return 0, fmt.Errorf("jit: symbol number %d does not exist", index)
	}
	s := im.symbols[index-1]
	switch s.Section {
	case elf.SHN_UNDEF:
		return 0, fmt.Errorf("jit: the code refers to %q, which is not defined in it", s.Name)
	case elf.SHN_ABS:
		return s.Value, nil
	}
	at, ok := im.secAt[int(s.Section)]
	if !ok {
		return 0, fmt.Errorf("jit: symbol %q lies in section %d, which is not loaded", s.Name, s.Section)
	}
	if s.Value > im.secLen[int(s.Section)] {
		return 0, fmt.Errorf("jit: symbol %q lies outside its section", s.Name)
	}
	return base + at + s.Value, nil
}

// relocate applies the relocations to mem, which will run at address base.
func (im *image) relocate(mem []byte, base uint64, relocs []relocation) error {
	le := binary.LittleEndian
	for symbol, slot := range im.gotAt {
		a, err := im.address(symbol, base)
		if err != nil {
			return err
		}
		le.PutUint64(mem[slot:], a)
	}
	for _, r := range relocs {
		s, err := im.address(r.symbol, base)
		if err != nil {
			return err
		}
		value := int64(s) + r.addend
		place := int64(base + r.at)
		fits := true
		switch r.kind {
		case elf.R_X86_64_64:
			le.PutUint64(mem[r.at:], uint64(value))
		case elf.R_X86_64_PC64:
			le.PutUint64(mem[r.at:], uint64(value-place))
		case elf.R_X86_64_32:
			fits = value == int64(uint32(value))
			le.PutUint32(mem[r.at:], uint32(value))
		case elf.R_X86_64_32S:
			fits = value == int64(int32(value))
			le.PutUint32(mem[r.at:], uint32(value))
		case elf.R_X86_64_PC32, elf.R_X86_64_PLT32:
			fits = value-place == int64(int32(value-place))
			le.PutUint32(mem[r.at:], uint32(value-place))
		case elf.R_X86_64_GOTPCREL, elf.R_X86_64_GOTPCRELX, elf.R_X86_64_REX_GOTPCRELX:
			value = int64(base+im.gotAt[r.symbol]) + r.addend
			fits = value-place == int64(int32(value-place))
			le.PutUint32(mem[r.at:], uint32(value-place))
		default:
			return fmt.Errorf("jit: relocation %v is not supported", r.kind)
		}
		if !fits {
			return fmt.Errorf("jit: relocation %v at %#x does not fit its field", r.kind, r.at)
		}
	}
	return nil
}

// link lays an object out: the image's bytes for address base are produced by the returned function.
func link(obj []byte) (im *image, place func(mem []byte, base uint64) error, err error) {
	im, err = parse(obj)
	if err != nil {
		return nil, nil, err
	}
	relocs, sections, err := im.rawRelocations()
	if err != nil {
		return nil, nil, err
	}
	if err := im.layout(relocs); err != nil {
		return nil, nil, err
	}
	for i := range relocs {
		relocs[i].at += im.secAt[sections[i]]
	}
	place = func(mem []byte, base uint64) error {
		if err := im.fill(mem); err != nil {
			return err
		}
		return im.relocate(mem, base, relocs)
	}
	return im, place, nil
}

// exports lists the offsets of the global symbols that the object defines.
func (im *image) exports() map[string]uint64 {
	out := map[string]uint64{}
	for _, s := range im.symbols {
		at, ok := im.secAt[int(s.Section)]
		if elf.ST_BIND(s.Info) == elf.STB_LOCAL || !ok || s.Value >= im.secLen[int(s.Section)] {
			continue
		}
		out[s.Name] = at + s.Value
	}
	return out
}
