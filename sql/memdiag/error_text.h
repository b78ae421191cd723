/*
  The text of a prepared statement's error (patches/diets/0049). Upstream keeps
  a buffer of 512 bytes in each prepared statement, although it is used only if
  a parameter that was sent in parts has an error.

  Ownership: the object owns its buffer. Threads: the session's own. Units:
  bytes. Errors: without memory the error keeps its number and loses its text.
*/

#ifndef MEMDIAG_ERROR_TEXT_H
#define MEMDIAG_ERROR_TEXT_H

#include <cstdarg>
#include <cstddef>
#include <cstdio>
#include <memory>
#include <new>

namespace memdiag {

/** Behaves as the array that it replaces, but for sizeof.
@tparam size  of the buffer */
template <size_t size>
class Error_text {
  /** The first character. Without a buffer there is none, and the text ends. */
  struct First {
    char *at;
    void operator=(char value) {
      if (at != nullptr) *at = value;
    }
  };

 public:
  /** The buffer, to write a text or to read it. */
  operator char *() {
    if (m_text == nullptr) m_text.reset(new (std::nothrow) char[size]{});
    if (m_text != nullptr) return m_text.get();
    s_lost[0] = '\0';
    return s_lost;
  }

  First operator*() { return {m_text.get()}; }

  bool has_buffer() const { return m_text != nullptr; }

 private:
  /** A session without memory writes here. */
  inline static thread_local char s_lost[size];

  std::unique_ptr<char[]> m_text;
};

/** Upstream passes the sizeof of the array, which here is not the text's. */
template <size_t size>
[[gnu::format(printf, 3, 4)]] void snprintf(Error_text<size> &text, size_t,
                                            const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, size, format, arguments);
  va_end(arguments);
}

}  // namespace memdiag

#endif  // MEMDIAG_ERROR_TEXT_H
