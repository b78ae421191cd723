/*
  The functions that threads of the X plugin call while they read a message of
  the X protocol (plugin/x/memdiag_messages.cc), and before they copy a value of
  a row (plugin/x/memdiag_rows.cc). They are weak, as in
  mysys/memdiag/upstream/hooks.h. The thread that serves the client calls them.
  Units: bytes.
*/

#ifndef MEMDIAG_MESSAGE_HOOKS_H
#define MEMDIAG_MESSAGE_HOOKS_H

#include <cstddef>
#include <cstdint>

extern "C" {
/** A message of so much is about to be read.
@param connects  it is of the kind that a client may send before its account is
                 known: capabilities, passwords
@return false: it must not be read */
[[gnu::weak]] bool memdiag_message_comes(size_t size, bool connects);
/** A part of the message is about to be read.
@return false: the rest must not be */
[[gnu::weak]] bool memdiag_message_goes_on();
/** The message was answered, and its memory is freed. */
[[gnu::weak]] void memdiag_message_ended();
/** The calling thread's statement copies a value of so much into its answer.
@return true: it must end instead, and the error was raised */
[[gnu::weak]] bool memdiag_value_is_refused(size_t size);
}

namespace memdiag {

/** A message that is not larger does not wait. 100 clients without an account,
which is the default of mysqlx_max_connections, make 30 MB of them at most. */
constexpr int small_message = 16 << 10;
/** A session keeps the memory of a message that is not larger. */
constexpr int kept_message = 64 << 10;
/** A shorter value of a row never waits. */
constexpr size_t long_value = 64 << 10;

inline bool value_is_refused(size_t size) {
  return size >= long_value && memdiag_value_is_refused != nullptr &&
         memdiag_value_is_refused(size);
}

}  // namespace memdiag

#endif  // MEMDIAG_MESSAGE_HOOKS_H
