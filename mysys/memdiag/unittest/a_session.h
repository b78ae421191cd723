/* The members of a THD that scope_hooks.h uses. */

#ifndef MEMDIAG_A_SESSION_H
#define MEMDIAG_A_SESSION_H

#include <algorithm>

namespace memdiag_test {

struct A_session {
  struct {
    struct {
      unsigned char m_hash[32]{};
    } m_digest_storage;
  } m_digest_state;

  /** @param digest  the 32 bytes of the statement's digest */
  explicit A_session(const unsigned char *digest) { set_digest(digest); }

  void set_digest(const unsigned char *digest) {
    std::copy_n(digest, 32, m_digest_state.m_digest_storage.m_hash);
  }
  bool in_active_multi_stmt_transaction() const { return false; }
};

}  // namespace memdiag_test

#endif  // MEMDIAG_A_SESSION_H
