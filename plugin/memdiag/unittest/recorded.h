/*
  The files of records, for tests and fuzzers: their bytes, the places of
  records, their checksums, and all that readers make of them.
*/

#ifndef MEMDIAG_RECORDED_H
#define MEMDIAG_RECORDED_H

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <vector>

#include "plugin/memdiag/profile/symbols.h"
#include "plugin/memdiag/profile_file/profile_file.h"
#include "plugin/memdiag/profile_file/record_rows.h"

namespace memdiag_test {

using Bytes = std::vector<std::byte>;

/** The size of a header. */
constexpr size_t page = 4096;

inline Bytes read_file(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  Bytes bytes(std::filesystem::file_size(path));
  file.read(reinterpret_cast<char *>(bytes.data()),
            static_cast<std::streamsize>(bytes.size()));
  return bytes;
}

inline void write_file(const std::string &path,
                       std::span<const std::byte> bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char *>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
}

/** A record begins with the checksum of the rest: FNV-1a as published, once
more. */
inline void correct_checksum(std::byte *record, size_t size) {
  uint64_t hash = 0xcbf29ce484222325;
  for (size_t i = sizeof hash; i < size; ++i) {
    hash ^= std::to_integer<uint64_t>(record[i]);
    hash *= 0x100000001b3;
  }
  memcpy(record, &hash, sizeof hash);
}

/** The places of the records of a file, as its header says. */
struct Profile_layout {
  explicit Profile_layout(const Bytes &file) {
    uint32_t numbers[11];
    memcpy(numbers, file.data() + 12, sizeof numbers);
    const auto [run, module, modules, site, sites, ramp, ramps, highs, history,
                histories, zero] = numbers;
    EXPECT_EQ(0u, zero);
    for (size_t part = 0; part < 2; ++part) {
      const auto add = [this](size_t count, size_t size) {
        for (; count > 0; --count) {
          records.push_back({end, size});
          end += size;
        }
      };
      add(1, run);
      add(modules, module);
      add(sites, site);
      add(ramps * (1 + highs), ramp);
      add(histories, history);
    }
    EXPECT_EQ(file.size(), end);
  }

  struct Record {
    size_t offset;
    size_t size;
  };
  std::vector<Record> records;
  size_t end{page};
};

/** Makes all that readers make. */
inline size_t show(const memdiag::profile::Contents &contents) {
  using namespace memdiag::profile;
  size_t entries = 0;
  for (const auto *run : {&contents.former, &contents.latest}) {
    if (!*run) continue;
    for (const auto *snapshots : {&(*run)->ramps, &(*run)->history})
      for (const Snapshot &snapshot : *snapshots)
        entries += (*run)->profile_of(snapshot).entries.size();
    for (const Snapshot *snapshot : {(*run)->at_peak(), (*run)->before_ramp()})
      if (snapshot != nullptr)
        (void)Symbols((*run)->profile_of(*snapshot), {"/none", "/none"});
    (void)last_run_profile_rows(**run);
    profile_history_rows(**run, 1,
                         [](const Profile_history_row &) { return true; });
    (void)replaced_modules(**run, (*run)->modules);
  }
  return entries;
}

}  // namespace memdiag_test

#endif  // MEMDIAG_RECORDED_H
