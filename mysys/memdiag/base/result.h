/*
  How this project's functions tell of failures:

    Result<T>       a value, or the errno that says why there is none
    int             0 or an errno, where there is no value
    std::optional   a figure that may be unknown. errno or a warning has the
                    reason, if the caller needs one (Reading in the plugin)
    std::string     what is wrong with a user's setting, and what to do; "": it
                    is in force

  Exceptions are std::bad_alloc alone, where a header says so.
  Threads: plain values.
*/

#ifndef MEMDIAG_RESULT_H
#define MEMDIAG_RESULT_H

namespace memdiag {

/** A value, or the errno that says why there is none. */
template <typename T>
class [[nodiscard]] Result {
 public:
  static constexpr Result ok(T value) { return Result{value, 0}; }
  static constexpr Result failed(int error) { return Result{T{}, error}; }

  constexpr explicit operator bool() const { return m_error == 0; }
  /** The value; meaningful only if there is no error. */
  constexpr T value() const { return m_value; }
  constexpr T value_or(T fallback) const {
    return m_error == 0 ? m_value : fallback;
  }
  /** 0, or an errno. */
  constexpr int error() const { return m_error; }

 private:
  constexpr Result(T value, int error) : m_value(value), m_error(error) {}
  T m_value;
  int m_error;
};

}  // namespace memdiag

#endif  // MEMDIAG_RESULT_H
