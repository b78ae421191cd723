/*
  What the fuzzers share. Each *_fuzz.cc gives the bytes of libFuzzer to one
  parser. tools/fuzz.py builds and runs them; seeds/ has the inputs that they
  begin with.
*/

#ifndef MEMDIAG_FUZZ_H
#define MEMDIAG_FUZZ_H

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace memdiag_test {

/** The fuzzer stops and keeps the input unless it holds. */
inline void require(bool holds) {
  if (!holds) __builtin_trap();
}

inline std::string_view text_of(const uint8_t *bytes, size_t size) {
  return {reinterpret_cast<const char *>(bytes), size};
}

/** Several texts in one, with a 0 between them. */
inline std::vector<std::string_view> texts_of(const uint8_t *bytes,
                                              size_t size) {
  std::vector<std::string_view> texts;
  std::string_view rest = text_of(bytes, size);
  for (size_t end; (end = rest.find('\0')) != rest.npos;
       rest.remove_prefix(end + 1))
    texts.push_back(rest.substr(0, end));
  texts.push_back(rest);
  return texts;
}

inline bool is_within(std::string_view part, std::string_view text) {
  return part.empty() ||
         (part.data() >= text.data() &&
          part.data() + part.size() <= text.data() + text.size());
}

}  // namespace memdiag_test

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

#endif  // MEMDIAG_FUZZ_H
