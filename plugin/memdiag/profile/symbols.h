/*
  Names of addresses, on request. It keeps nothing between two calls, and reads
  only symbol tables (elf_file.h).

  A name is either right or missing: a file counts only if its build id is that
  of the module that was mapped. A file that was replaced after the start, or a
  module without a build id, therefore has no names. The program itself is read
  through /proc/self/exe: this is the file that runs, whatever its path names
  now. If the file of a module was stripped, the symbol table of its debug file
  (/usr/lib/debug/.build-id) is read.

  Cost: 2,000 addresses of mysqld (200,000 symbols) take 30 ms and 1 MB.

  Ownership: values. Threads: any. Errors: std::bad_alloc; a file that cannot be
  read has no names. After the statement was killed (interruption.h) names are
  missing or not demangled.
*/

#ifndef MEMDIAG_PROFILE_SYMBOLS_H
#define MEMDIAG_PROFILE_SYMBOLS_H

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "plugin/memdiag/profile/profile.h"

namespace memdiag::profile {

struct Symbol {
  /** For people (function_name.h). If the function is not known: the module and
  `offset` ("libc.so.6+0x1234"), or the address if no module contains it. */
  std::string name;
  /** As in the symbol table; empty: not known. */
  std::string linkage_name;
  /** Index in the list of modules; empty: none contains the address. */
  std::optional<size_t> module;
  /** The call's address in the module's file, which addr2line takes. Without a
  module: its address in the process. */
  uint64_t offset{0};

  bool is_known() const { return !linkage_name.empty(); }
};

/** The files with symbol tables. */
struct Symbol_sources {
  std::string program{"/proc/self/exe"};
  /** Debug files: <folder>/01/23ab.debug for build id 0123ab. */
  std::string debug_files{"/usr/lib/debug/.build-id"};
};

class Symbols {
 public:
  /** No address has a name. */
  Symbols() = default;

  /** @param addresses  return addresses, in any order */
  Symbols(std::span<const Module> modules, std::vector<uint64_t> addresses,
          const Symbol_sources &sources = {});

  /** All addresses of a profile. */
  explicit Symbols(const Profile &profile, const Symbol_sources &sources = {});

  /** The function that contains the call before a return address. An address
  that was not asked for is unknown; its name is "?". */
  const Symbol &operator[](uint64_t address) const;

 private:
  /** Both in ascending order of addresses. */
  std::vector<uint64_t> m_addresses;
  std::vector<Symbol> m_symbols;
};

}  // namespace memdiag::profile

#endif  // MEMDIAG_PROFILE_SYMBOLS_H
