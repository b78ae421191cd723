/*
  Lets a long read end early: the reader of a table was killed, or its statement
  has run out of time.

  The caller of a read puts an Interruptible around it. The loops below it ask
  is_interrupted() and stop; what they have by then is incomplete, and the
  caller throws it away. Without an Interruptible nothing is interrupted.

  Threads: each has its own. The innermost Interruptible alone is asked, and
  they end in the reverse order. Ownership: the context is the caller's and
  lives longer. Cost: one thread-local load where there is none. A test can make
  every read endless (fault.h).
*/

#ifndef MEMDIAG_INTERRUPTION_H
#define MEMDIAG_INTERRUPTION_H

#include <unistd.h>

#include "mysys/memdiag/base/fault.h"

namespace memdiag {

class Interruptible {
 public:
  using Predicate = bool (*)(const void *context);

  /** @param predicate  true: stop. Called often, by this thread only. */
  Interruptible(Predicate predicate, const void *context)
      : m_predicate(predicate), m_context(context), m_outer(s_innermost) {
    s_innermost = this;
  }
  ~Interruptible() { s_innermost = m_outer; }
  Interruptible(const Interruptible &) = delete;
  Interruptible &operator=(const Interruptible &) = delete;

 private:
  friend bool is_interrupted();

  static inline constinit thread_local const Interruptible *s_innermost{
      nullptr};

  const Predicate m_predicate;
  const void *const m_context;
  const Interruptible *const m_outer;
};

inline bool is_interrupted() {
  const Interruptible *const innermost = Interruptible::s_innermost;
  if (innermost == nullptr) return false;
  while (fault::at(fault::Point::end) &&
         !innermost->m_predicate(innermost->m_context))
    usleep(1000);
  return innermost->m_predicate(innermost->m_context);
}

}  // namespace memdiag

#endif  // MEMDIAG_INTERRUPTION_H
