/*
  A loadable function that uses what crosses the border between mysqld's C++
  library and a plugin's: exceptions thrown on the other side, thrown again and
  carried over to another thread, streams, locales, regular expressions, memory
  of operator new. Returns 0, or the number of the first step that failed.
  packaging/tests/smoke.py loads it linked with the static and with the shared
  C++ library.
*/
#include <exception>
#include <locale>
#include <memory>
#include <new>
#include <regex>
#include <sstream>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>

namespace {

long long failed_step() {
  const std::string text = "12 plugins";
  try {
    (void)text.at(text.size() + 1);  // mysqld's copy throws
    return 1;
  } catch (const std::out_of_range &) {
  }
  try {
    (void)::operator new(~size_t{0} >> 1);  // mysqld's operator new throws
    return 2;
  } catch (const std::bad_alloc &) {
  }
  if (std::uncaught_exceptions() != 0) return 3;
  std::exception_ptr carried;
  std::thread([&carried] {
    try {
      try {
        throw std::system_error(std::make_error_code(std::errc::io_error));
      } catch (const std::runtime_error &) {
        throw;
      }
    } catch (...) {
      carried = std::current_exception();
    }
  }).join();
  try {
    std::rethrow_exception(carried);
  } catch (const std::system_error &error) {
    if (error.code() != std::errc::io_error) return 4;
  }
  std::istringstream in(text);
  in.imbue(std::locale::classic());
  int number = 0;
  std::string word;
  in >> number >> word;
  std::ostringstream out;
  out << number + 0.5 << word;
  if (out.str() != "12.5plugins") return 5;
  if (!std::regex_match(text, std::regex("[[:digit:]]+ \\w+"))) return 6;
  if (!std::use_facet<std::ctype<char>>(std::locale())
           .is(std::ctype_base::digit, '1'))
    return 7;
  const std::unique_ptr<std::streambuf> buffer =
      std::make_unique<std::stringbuf>(text);
  if (dynamic_cast<std::stringbuf *>(buffer.get()) == nullptr) return 8;
  return 0;
}

}  // namespace

extern "C" {
bool border_init(void *, void *, char *) { return false; }
long long border(void *, void *, unsigned char *, unsigned char *) {
  return failed_step();
}
}
