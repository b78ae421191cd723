/*
  The file of samples. The input is the part behind the header. Records whose
  checksum begins with an even byte get the right one: the fuzzer would not find
  it.
*/

#include "plugin/memdiag/history/black_box.h"

#include <cstring>

#include "mysys/memdiag/unittest/file_tree.h"
#include "plugin/memdiag/unittest/collect_rows.h"
#include "plugin/memdiag/unittest/fuzz/fuzz.h"
#include "plugin/memdiag/unittest/recorded.h"

namespace {

using namespace memdiag;
using namespace memdiag::black_box;
using memdiag_test::Bytes;
using memdiag_test::require;

Bytes header() {
  const memdiag_test::File_tree folder;
  Box box;
  require(box.open(folder.at("/history.bin"), 1, {}, 0) == 0);
  Bytes bytes = memdiag_test::read_file(folder.at("/history.bin"));
  bytes.resize(memdiag_test::page);
  return bytes;
}

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  static const Bytes beginning = header();
  Bytes file = beginning;
  const auto input = std::as_bytes(std::span{bytes, size});
  file.insert(file.end(), input.begin(), input.end());
  for (size_t at = beginning.size(); at + sizeof(Record) <= file.size();
       at += sizeof(Record))
    if ((file[at] & std::byte{1}) == std::byte{0})
      memdiag_test::correct_checksum(&file[at], sizeof(Record));
  Contents contents;
  require(parse(file, &contents));
  require(contents.samples.size() + contents.damaged <= size / sizeof(Record));
  (void)history_rows(contents.samples, contents.samples);
  (void)history_rows(contents.samples);
  (void)history_pool_rows(contents.samples, contents.samples);
  (void)parse(input, &contents);
  return 0;
}
