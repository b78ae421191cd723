/*
  A fuzzer's mutations of a text, the same in every run: of numbers, separators
  and lines, because random bytes alone do not get past the first parser.
*/

#ifndef MEMDIAG_MUTATE_H
#define MEMDIAG_MUTATE_H

#include <iterator>
#include <random>
#include <string>
#include <string_view>

namespace memdiag_test {

/** A text with one to four changes. */
inline std::string mutate(std::string text, std::mt19937 *random) {
  using namespace std::string_view_literals;
  constexpr std::string_view pieces[] = {
      "\n",
      " ",
      "\t",
      ":",
      ",",
      "-",
      "=",
      "[",
      "]",
      "(",
      ") ",
      "/",
      "/..",
      "\\",
      "\\04",
      "\0"sv,
      "\xff",
      "0",
      "-1",
      ".",
      "1e308",
      "nan",
      "inf",
      "max",
      " kB",
      "N0",
      "9223372036854771712",
      "18446744073709551615",
      "18446744073709551616",
      "99999999999999999999999999999999999999999"};
  const auto below = [random](size_t n) { return (*random)() % n; };
  for (size_t changes = 1 + below(4); changes > 0; --changes) {
    const size_t at = below(text.size() + 1);
    const size_t length = below(text.size() - at + 1);
    switch (below(5)) {
      case 0:
        text.insert(at, pieces[below(std::size(pieces))]);
        break;
      case 1:
        text.replace(at, below(4), pieces[below(std::size(pieces))]);
        break;
      case 2:
        text.erase(at, length);
        break;
      case 3:
        text.insert(below(text.size() + 1), text.substr(at, length));
        break;
      default:
        if (at < text.size()) text[at] = static_cast<char>(below(256));
    }
  }
  return text;
}

}  // namespace memdiag_test

#endif  // MEMDIAG_MUTATE_H
