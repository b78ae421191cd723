/*
  The name of a relay log in an event that waits for a worker of a replica
  (patches/diets/0062). Upstream keeps 513 bytes for it in each of the 16,384
  places of each worker's queue, and writes all of them when the worker starts.

  Ownership: the object has a short name in itself. Copies of a longer one share
  it. Threads: the coordinator makes one, workers copy and destroy it, under the
  locks of upstream's queues; what copies share is only read. Units: bytes.
  Errors: copying cannot fail. Without memory for a long name, the coordinator
  tries again: upstream's code cannot take a refusal there, and an event with
  another name would be applied from another file.
*/

#ifndef MEMDIAG_RELAY_LOG_NAME_H
#define MEMDIAG_RELAY_LOG_NAME_H

#include <array>
#include <chrono>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <thread>

namespace memdiag {

/** Behaves as the array of characters that it replaces, but for sizeof. */
class Relay_log_name {
 public:
  /** Long enough for "./host-relay-bin-channel.000001". */
  static constexpr size_t short_bytes = 80;

  Relay_log_name() = default;
  /** Upstream's {'\0'}. */
  Relay_log_name(char first) : m_short{first} {}

  operator const char *() const {
    return m_long == nullptr ? m_short.data() : m_long->c_str();
  }

  /** @param text  ends with a zero */
  void set(const char *text) {
    const size_t length = strlen(text);
    m_long.reset();
    if (length < short_bytes) {
      memcpy(m_short.data(), text, length + 1);
      return;
    }
    while (m_long == nullptr) try {
        m_long = std::make_shared<const std::string>(text, length);
      } catch (const std::bad_alloc &) {
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
      }
  }

 private:
  std::array<char, short_bytes> m_short{};
  /** nullptr: the name is short. */
  std::shared_ptr<const std::string> m_long;
};

/** Upstream's functions call strcpy() to set a name. */
inline void strcpy(Relay_log_name &to, const char *from) { to.set(from); }

}  // namespace memdiag

#endif  // MEMDIAG_RELAY_LOG_NAME_H
