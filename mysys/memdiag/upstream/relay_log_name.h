/*
  The name of a relay log in an event that waits for a worker of a replica
  (patches/diets/0062). Upstream keeps 513 bytes for it in each of the 16,384
  places of each worker's queue, and writes all of them when the worker starts.

  Ownership: all events that a coordinator reads from one relay log share its
  name, and so do their copies. Its characters stay while an object has them.
  Threads: the coordinator makes one, workers copy and destroy it, under the
  locks of upstream's queues; the shared name is only read. Units: bytes.
  Errors: copying cannot fail. Without memory for another name, the coordinator
  tries again: upstream's code cannot take a refusal there, and an event with
  another name would be applied from another file.
*/

#ifndef MEMDIAG_RELAY_LOG_NAME_H
#define MEMDIAG_RELAY_LOG_NAME_H

#include <chrono>
#include <memory>
#include <new>
#include <string>
#include <thread>

namespace memdiag {

/** Behaves as the array of characters that it replaces, but for sizeof. */
class Relay_log_name {
 public:
  Relay_log_name() = default;
  /** Upstream's {'\0'}. */
  Relay_log_name(char) {}

  operator const char *() const {
    return m_name == nullptr ? "" : m_name->c_str();
  }

  /** @param text  ends with a zero */
  void set(const char *text) {
    static thread_local std::shared_ptr<const std::string> last;
    while (last == nullptr || *last != text) try {
        last = std::make_shared<const std::string>(text);
      } catch (const std::bad_alloc &) {
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
      }
    m_name = last;
  }

 private:
  /** nullptr: it is empty. */
  std::shared_ptr<const std::string> m_name;
};

/** Upstream's functions call strcpy() to set a name. */
inline void strcpy(Relay_log_name &to, const char *from) { to.set(from); }

}  // namespace memdiag

#endif  // MEMDIAG_RELAY_LOG_NAME_H
