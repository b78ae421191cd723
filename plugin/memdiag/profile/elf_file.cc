#include "plugin/memdiag/profile/elf_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <utility>

#include "mysys/memdiag/base/interruption.h"
#include "plugin/memdiag/base/text.h"

namespace memdiag::profile {
namespace {

/** Bounds of what is read of one file. mysqld has 200,000 symbols, 50 sections
and 12 segments. */
constexpr uint64_t max_symbols = 1 << 22;
constexpr size_t max_sections = 4096;
constexpr size_t max_segments = 256;
constexpr size_t max_notes_bytes = 65536;
constexpr size_t max_build_id_bytes = 64;
/** The longest name of mysqld has 1,472 bytes. */
constexpr size_t max_name_bytes = 8192;
/** Functions do not overlap, but for aliases. A table in which each function
contains every address is not searched to its end. */
constexpr uint64_t max_matches_per_address = 1024;

constexpr size_t piece_bytes = 65536;

/** The best function for an address so far. */
struct Match {
  uint64_t begin{0};
  uint32_t name{0};
  unsigned char binding{0};
  bool found{false};
};

/** @return true: an alias that says more. An inner function is preferred to an
outer one, a name that others can use to a file's own. */
bool is_better(const Elf64_Sym &symbol, const Match &than) {
  if (!than.found) return true;
  if (symbol.st_value != than.begin) return symbol.st_value > than.begin;
  const auto rank = [](unsigned char binding) {
    return binding == STB_GLOBAL ? 2 : binding == STB_WEAK ? 1 : 0;
  };
  return rank(ELF64_ST_BIND(symbol.st_info)) > rank(than.binding);
}

}  // namespace

std::string build_id_in(std::span<const std::byte> notes, size_t alignment) {
  // Notes of 8-byte segments are aligned to 8, all others to 4 (gabi).
  const size_t unit = alignment == 8 ? 8 : 4;
  const auto aligned = [unit](uint64_t n) { return (n + unit - 1) & -unit; };
  while (notes.size() >= sizeof(Elf64_Nhdr)) {
    Elf64_Nhdr note;
    memcpy(&note, notes.data(), sizeof note);
    const uint64_t name = sizeof note;
    const uint64_t content = aligned(name + note.n_namesz);
    const uint64_t end = content + note.n_descsz;
    if (end > notes.size()) break;
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
        memcmp(&notes[name], "GNU", 4) == 0 && note.n_descsz != 0 &&
        note.n_descsz <= max_build_id_bytes)
      return hex(notes.subspan(content, note.n_descsz));
    notes = notes.subspan(std::min<uint64_t>(aligned(end), notes.size()));
  }
  return "";
}

std::optional<Elf_file> Elf_file::open(const std::string &path) {
  // O_NONBLOCK: it might be a pipe.
  const int descriptor =
      ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  if (descriptor < 0) return std::nullopt;
  Elf_file file(descriptor);
  struct stat about;
  if (fstat(descriptor, &about) != 0 || !S_ISREG(about.st_mode))
    return std::nullopt;
  file.m_size = static_cast<uint64_t>(about.st_size);
  if (!file.read_headers()) return std::nullopt;
  return file;
}

Elf_file::Elf_file(Elf_file &&other) noexcept
    : m_file(std::exchange(other.m_file, -1)),
      m_size(other.m_size),
      m_build_id(std::move(other.m_build_id)),
      m_has_symtab(other.m_has_symtab),
      m_symbols_offset(other.m_symbols_offset),
      m_symbols(other.m_symbols),
      m_names_offset(other.m_names_offset),
      m_names_bytes(other.m_names_bytes) {}

Elf_file::~Elf_file() {
  if (m_file >= 0) (void)close(m_file);
}

bool Elf_file::read(uint64_t offset, void *to, size_t bytes) const {
  if (offset > m_size || bytes > m_size - offset) return false;
  auto *at = static_cast<std::byte *>(to);
  while (bytes != 0) {
    const ssize_t count = pread(m_file, at, bytes, static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    // 0: it was truncated meanwhile.
    if (count <= 0) return false;
    at += count;
    offset += static_cast<uint64_t>(count);
    bytes -= static_cast<size_t>(count);
  }
  return true;
}

bool Elf_file::read_headers() {
  constexpr unsigned char byte_order =
      std::endian::native == std::endian::little ? ELFDATA2LSB : ELFDATA2MSB;
  Elf64_Ehdr header;
  if (!read(0, &header, sizeof header) ||
      memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_ident[EI_CLASS] != ELFCLASS64 ||
      header.e_ident[EI_DATA] != byte_order)
    return false;
  // A part that is missing or damaged leaves a file without id or functions.
  if (header.e_phentsize == sizeof(Elf64_Phdr) &&
      header.e_phnum <= max_segments) {
    std::vector<Elf64_Phdr> segments(header.e_phnum);
    if (read(header.e_phoff, segments.data(),
             segments.size() * sizeof segments[0]))
      find_build_id(segments);
  }
  if (header.e_shentsize == sizeof(Elf64_Shdr) &&
      header.e_shnum <= max_sections) {
    std::vector<Elf64_Shdr> sections(header.e_shnum);
    if (read(header.e_shoff, sections.data(),
             sections.size() * sizeof sections[0]))
      m_has_symtab = find_symbols(sections);
  }
  return true;
}

void Elf_file::find_build_id(std::span<const Elf64_Phdr> segments) {
  std::vector<std::byte> notes;
  for (const Elf64_Phdr &segment : segments) {
    if (segment.p_type != PT_NOTE || segment.p_filesz > max_notes_bytes)
      continue;
    notes.resize(segment.p_filesz);
    if (!read(segment.p_offset, notes.data(), notes.size())) continue;
    m_build_id = build_id_in(notes, segment.p_align);
    if (!m_build_id.empty()) return;
  }
}

/** @return true: it found .symtab; false: .dynsym or nothing */
bool Elf_file::find_symbols(std::span<const Elf64_Shdr> sections) {
  for (const uint32_t type : {SHT_SYMTAB, SHT_DYNSYM})
    for (const Elf64_Shdr &section : sections) {
      if (section.sh_type != type || section.sh_entsize != sizeof(Elf64_Sym) ||
          section.sh_link >= sections.size())
        continue;
      const Elf64_Shdr &names = sections[section.sh_link];
      const auto is_inside = [this](const Elf64_Shdr &part) {
        return part.sh_offset <= m_size &&
               part.sh_size <= m_size - part.sh_offset;
      };
      if (names.sh_type != SHT_STRTAB || !is_inside(names) ||
          !is_inside(section))
        continue;
      m_symbols_offset = section.sh_offset;
      m_symbols =
          std::min<uint64_t>(section.sh_size / sizeof(Elf64_Sym), max_symbols);
      m_names_offset = names.sh_offset;
      m_names_bytes = names.sh_size;
      return type == SHT_SYMTAB;
    }
  return false;
}

std::vector<std::string> Elf_file::functions_at(
    std::span<const uint64_t> addresses) const {
  std::vector<std::string> found(addresses.size());
  std::vector<Match> matches(addresses.size());
  uint64_t left = addresses.size() * max_matches_per_address;

  std::vector<Elf64_Sym> piece(piece_bytes / sizeof(Elf64_Sym));
  for (uint64_t at = 0; at < m_symbols; at += piece.size()) {
    if (is_interrupted()) return found;
    const size_t count = std::min<uint64_t>(piece.size(), m_symbols - at);
    if (!read(m_symbols_offset + at * sizeof(Elf64_Sym), piece.data(),
              count * sizeof(Elf64_Sym)))
      return found;
    for (const Elf64_Sym &symbol : std::span{piece}.first(count)) {
      const unsigned char type = ELF64_ST_TYPE(symbol.st_info);
      if ((type != STT_FUNC && type != STT_GNU_IFUNC) ||
          symbol.st_shndx == SHN_UNDEF || symbol.st_name >= m_names_bytes)
        continue;
      for (auto i = std::lower_bound(addresses.begin(), addresses.end(),
                                     symbol.st_value);
           i != addresses.end() && *i - symbol.st_value < symbol.st_size; ++i) {
        if (left-- == 0) return found;
        Match &match = matches[static_cast<size_t>(i - addresses.begin())];
        if (is_better(symbol, match))
          match = {symbol.st_value, symbol.st_name,
                   static_cast<unsigned char>(ELF64_ST_BIND(symbol.st_info)),
                   true};
      }
    }
  }

  std::vector<char> text(max_name_bytes);
  for (size_t i = 0; i < addresses.size(); ++i) {
    if (!matches[i].found) continue;
    if (is_interrupted()) return found;
    if (i > 0 && matches[i - 1].found &&
        matches[i].name == matches[i - 1].name) {
      found[i] = found[i - 1];
      continue;
    }
    // Most names are short: read little, and more if it has no end.
    for (size_t bytes = 256;; bytes = text.size()) {
      const size_t there =
          std::min<uint64_t>(bytes, m_names_bytes - matches[i].name);
      if (!read(m_names_offset + matches[i].name, text.data(), there)) break;
      if (const size_t length = strnlen(text.data(), there); length < there) {
        found[i].assign(text.data(), length);
        break;
      }
      if (there < bytes || bytes == text.size()) break;
    }
  }
  return found;
}

}  // namespace memdiag::profile
