/*
  The build id and the functions of an ELF file (elf(5)), from its symbol table
  alone. It never reads debug information, which takes seconds and hundreds of
  megabytes, as ClickHouse and Neon found.

  The file is untrusted. It is read with pread() and not mapped: SIGBUS ends a
  process that reads a mapped file after it was truncated. Each offset is
  checked, and the work is bounded whatever the file contains.

  Cost: a call reads the symbol table once, in pieces of 64 KB, whatever the
  number of addresses, and then makes one read for each function found. It
  keeps nothing.

  Ownership: an Elf_file owns its descriptor. Threads: each object belongs to
  one thread. Errors: a file has no functions if it cannot be read, is of
  another machine or lacks a symbol table. std::bad_alloc.
*/

#ifndef MEMDIAG_ELF_FILE_H
#define MEMDIAG_ELF_FILE_H

#include <elf.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace memdiag::profile {

/** The build id (NT_GNU_BUILD_ID) among the notes of a segment, in hexadecimal;
"" if none is there.
@param alignment  of the segment */
std::string build_id_in(std::span<const std::byte> notes, size_t alignment);

class Elf_file {
 public:
  /** Empty: not a 64-bit ELF file of this machine's byte order. A path that
  names a pipe or a device does not block. */
  static std::optional<Elf_file> open(const std::string &path);

  Elf_file(Elf_file &&other) noexcept;
  Elf_file &operator=(Elf_file &&) = delete;
  ~Elf_file();

  /** In hexadecimal; empty: the file has none. */
  const std::string &build_id() const { return m_build_id; }

  /** false: strip(1) has removed all functions but those that the file exports
  (.dynsym). */
  bool has_all_functions() const { return m_has_symtab; }

  /** For each address, the symbol of the function that contains it, as the
  table has it; "": the table has no such function, or the read was
  interrupted (interruption.h).
  @param addresses  of the file's symbol table, in ascending order */
  std::vector<std::string> functions_at(
      std::span<const uint64_t> addresses) const;

 private:
  explicit Elf_file(int file) : m_file(file) {}
  bool read_headers();
  void find_build_id(std::span<const Elf64_Phdr> segments);
  bool find_symbols(std::span<const Elf64_Shdr> sections);
  /** @return true: all bytes are within the file and were read */
  bool read(uint64_t offset, void *to, size_t bytes) const;

  int m_file;
  uint64_t m_size{0};
  std::string m_build_id;
  bool m_has_symtab{false};
  /** The place of the symbol table and of its names. */
  uint64_t m_symbols_offset{0};
  uint64_t m_symbols{0};
  uint64_t m_names_offset{0};
  uint64_t m_names_bytes{0};
};

}  // namespace memdiag::profile

#endif  // MEMDIAG_ELF_FILE_H
