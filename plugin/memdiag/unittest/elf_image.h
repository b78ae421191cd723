/* Makes small ELF files, whole or wrong in a chosen place. */

#ifndef MEMDIAG_ELF_IMAGE_H
#define MEMDIAG_ELF_IMAGE_H

#include <elf.h>

#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace memdiag_test {

struct Elf_function {
  std::string name;
  uint64_t begin;
  uint64_t size;
  unsigned char binding{STB_GLOBAL};
  unsigned char type{STT_FUNC};
  uint16_t section{1};
};

struct Elf_image {
  std::vector<Elf_function> symtab;
  std::vector<Elf_function> dynsym;
  std::string build_id{"\x01\x23\xab"};

  static void append(std::string *to, const void *from, size_t bytes) {
    to->append(static_cast<const char *>(from), bytes);
  }

  /** The file. Its sections: none, .symtab, .strtab, .dynsym, .dynstr. */
  std::string bytes() const {
    Elf64_Ehdr header{};
    memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_ident[EI_DATA] = ELFDATA2LSB;
    header.e_phentsize = sizeof(Elf64_Phdr);
    header.e_shentsize = sizeof(Elf64_Shdr);
    header.e_phoff = sizeof header;
    header.e_phnum = 1;

    std::string notes;
    const auto note = [&notes](uint32_t type, const std::string &content) {
      const Elf64_Nhdr head{4, static_cast<uint32_t>(content.size()), type};
      append(&notes, &head, sizeof head);
      append(&notes, "GNU", 4);
      notes += content;
      notes.resize((notes.size() + 3) / 4 * 4);
    };
    note(NT_GNU_ABI_TAG, "ABI");
    if (!build_id.empty()) note(NT_GNU_BUILD_ID, build_id);
    Elf64_Phdr segment{};
    segment.p_type = PT_NOTE;
    segment.p_offset = sizeof header + sizeof segment;
    segment.p_filesz = notes.size();
    segment.p_align = 4;

    std::string body = notes;
    std::vector<Elf64_Shdr> sections(1);
    const auto section = [&](uint32_t type, const std::string &content,
                             uint64_t entry, uint32_t link) {
      Elf64_Shdr made{};
      made.sh_type = type;
      made.sh_offset = sizeof header + sizeof segment + body.size();
      made.sh_size = content.size();
      made.sh_entsize = entry;
      made.sh_link = link;
      body += content;
      sections.push_back(made);
    };
    const auto table = [&](uint32_t type,
                           const std::vector<Elf_function> &functions) {
      if (functions.empty()) return;
      std::string symbols(sizeof(Elf64_Sym), '\0');
      std::string names(1, '\0');
      for (const Elf_function &function : functions) {
        Elf64_Sym symbol{};
        symbol.st_name = static_cast<uint32_t>(names.size());
        symbol.st_info = ELF64_ST_INFO(function.binding, function.type);
        symbol.st_shndx = function.section;
        symbol.st_value = function.begin;
        symbol.st_size = function.size;
        append(&symbols, &symbol, sizeof symbol);
        names += function.name;
        names += '\0';
      }
      section(type, symbols, sizeof(Elf64_Sym),
              static_cast<uint32_t>(sections.size() + 1));
      section(SHT_STRTAB, names, 0, 0);
    };
    table(SHT_DYNSYM, dynsym);
    table(SHT_SYMTAB, symtab);
    header.e_shnum = static_cast<uint16_t>(sections.size());
    header.e_shoff = sizeof header + sizeof segment + body.size();

    std::string file;
    append(&file, &header, sizeof header);
    append(&file, &segment, sizeof segment);
    file += body;
    append(&file, sections.data(), sections.size() * sizeof sections[0]);
    return file;
  }
};

}  // namespace memdiag_test

#endif  // MEMDIAG_ELF_IMAGE_H
