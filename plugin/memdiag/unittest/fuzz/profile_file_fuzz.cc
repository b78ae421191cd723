/*
  The flight recorder's file. The input is a list of records: kind, place and
  length, then the record's bytes behind the checksum. It gets the right
  checksum unless the kind is odd: the fuzzer would not find it. The file ends
  behind the last record, because the reader looks at all places before.
*/

#include "plugin/memdiag/profile_file/profile_file.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "mysys/memdiag/unittest/file_tree.h"
#include "plugin/memdiag/profile_file/file_reader.h"
#include "plugin/memdiag/unittest/fuzz/fuzz.h"
#include "plugin/memdiag/unittest/recorded.h"

namespace {

using namespace memdiag::profile;
using memdiag_test::Bytes;
using memdiag_test::require;

/** A file in which nothing was recorded. */
Bytes empty_file() {
  const memdiag_test::File_tree folder;
  Profile_file file;
  require(file.open(folder.at("/profile.bin"), {}).error == 0);
  Bytes bytes = memdiag_test::read_file(folder.at("/profile.bin"));
  std::fill(bytes.begin() + memdiag_test::page, bytes.end(), std::byte{0});
  return bytes;
}

/** Numbers of records in the layout's list: first and count. */
constexpr std::pair<size_t, size_t> kinds[] = {
    {0, 1},
    {1, file_modules},
    {1 + file_modules, file_sites},
    {1 + file_modules + file_sites, file_ramps * (1 + file_highs)},
    {1 + file_modules + file_sites + file_ramps * (1 + file_highs),
     file_history}};

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  static Bytes file = empty_file();
  static const memdiag_test::Profile_layout layout(file);
  std::span<const uint8_t> rest{bytes, size};
  size_t end = memdiag_test::page;
  std::vector<std::span<std::byte>> written;
  while (rest.size() > 4) {
    const auto [first, count] = kinds[rest[0] / 2 % std::size(kinds)];
    const bool is_whole = rest[0] % 2 == 0;
    const auto &record = layout.records[first + rest[1] % count];
    const size_t length =
        std::min<size_t>({size_t{rest[2]} | size_t{rest[3]} << 8,
                          rest.size() - 4, record.size - 8});
    const std::span<std::byte> place{&file[record.offset], record.size};
    memcpy(&place[8], &rest[4], length);
    if (is_whole) memdiag_test::correct_checksum(place.data(), place.size());
    written.push_back(place);
    end = std::max(end, record.offset + record.size);
    rest = rest.subspan(4 + length);
  }
  Contents contents;
  require(parse(std::span{file}.first(end), &contents));
  require(contents.damaged <= written.size());
  (void)contents.run_to_keep();
  memdiag_test::show(contents);
  for (const auto place : written)
    std::fill(place.begin(), place.end(), std::byte{0});
  (void)parse(std::as_bytes(std::span{bytes, size}), &contents);
  return 0;
}
