/*
  InnoDB keeps the pages that recovery read from the doublewrite files, 16 KB of
  each of a thousand, until it shuts down. It looks at them while it applies the
  redo log, and once more for the log of DDL, whose replay is the last step of
  recovery: ha_post_recover(). They are freed behind that.

  The linker redirects the call of that function to this file (--wrap, in
  cmake/upstream/product.cmake).

  Threads: the one that starts the server. Errors: none.
*/

#include <new>
#include <utility>

#include "buf0dblwr.h"
#include "log0recv.h"
#include "ut0new.h"

void recover_ddl() asm("__real__Z15ha_post_recoverv");
void recover_ddl_and_free_pages() asm("__wrap__Z15ha_post_recoverv");

namespace {

// A new object, and not none: InnoDB's shutdown uses it.
void free_pages() try {
  if (recv_sys == nullptr || recv_recovery_on) return;
  auto *const none =
      ut::new_withkey<dblwr::recv::DBLWR>(UT_NEW_THIS_FILE_PSI_KEY);
  ut::delete_(std::exchange(recv_sys->dblwr, none));
} catch (const std::bad_alloc &) {
  // They stay, as in stock.
}

}  // namespace

void recover_ddl_and_free_pages() {
  recover_ddl();
  free_pages();
}
