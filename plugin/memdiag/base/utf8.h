/*
  Texts in UTF-8, of any origin: names in files, what a client sends, paths.

  Pure functions. No content of a text does harm.
*/

#ifndef MEMDIAG_UTF8_H
#define MEMDIAG_UTF8_H

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace memdiag::utf8 {

struct Character {
  /** Bytes; 0: the text does not begin with a character. */
  size_t length;
  uint32_t code;
};

/** The character at the beginning of a text that is not empty. */
inline Character first_of(std::string_view text) {
  const auto byte = [text](size_t i) {
    return static_cast<unsigned char>(text[i]);
  };
  const unsigned first = byte(0);
  if (first < 0x80) return {1, first};
  const size_t length = first < 0xc2   ? 0
                        : first < 0xe0 ? 2
                        : first < 0xf0 ? 3
                        : first < 0xf5 ? 4
                                       : 0;
  if (length == 0 || length > text.size()) return {0, 0};
  uint32_t code = first & (0x7f >> length);
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {0, 0};
    code = code << 6 | (byte(i) & 0x3f);
  }
  // Longer than needed, beyond Unicode, surrogates.
  if ((length == 3 && code < 0x800) ||
      (length == 4 && (code < 0x10000 || code > 0x10ffff)) ||
      (code >= 0xd800 && code < 0xe000))
    return {0, 0};
  return {length, code};
}

/** The beginning of a text, as a column in the server's utf8mb3 can hold it:
each byte that is no UTF-8 is a question mark, and so is each character of four
bytes.
@param characters  the most that the column holds
@param room  gets the result if that is not a part of the text
@return valid as long as both. @throws std::bad_alloc */
inline std::string_view fitting(std::string_view text, size_t characters,
                                std::string *room) {
  const std::string_view begin = text.substr(0, characters);
  if (std::ranges::all_of(
          begin, [](char c) { return static_cast<unsigned char>(c) < 0x80; }))
    return begin;
  room->clear();
  for (; !text.empty() && characters > 0; --characters) {
    const size_t length = first_of(text).length;
    if (length == 0 || length == 4)
      *room += '?';
    else
      *room += text.substr(0, length);
    text.remove_prefix(std::max<size_t>(length, 1));
  }
  return *room;
}

}  // namespace memdiag::utf8

#endif  // MEMDIAG_UTF8_H
