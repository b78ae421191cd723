/*
  An operator new of the program's own, which counts or fails as the test says.
  Only for programs with a sanitizer: elsewhere that is jemalloc's, which is
  linked whole. One file of a program includes it, and defines may_allocate().

  Threads: any. Errors: std::bad_alloc where the test wants it.
*/

#ifndef MEMDIAG_TEST_OWN_NEW_H
#define MEMDIAG_TEST_OWN_NEW_H

#include <cstdlib>
#include <new>

namespace memdiag_test {

/** Called for each block. @return false: there is no memory */
bool may_allocate() noexcept;

}  // namespace memdiag_test

void *operator new(size_t size, const std::nothrow_t &) noexcept {
  return memdiag_test::may_allocate() ? malloc(size == 0 ? 1 : size) : nullptr;
}
void *operator new(size_t size) {
  void *const block = operator new(size, std::nothrow);
  if (block == nullptr) throw std::bad_alloc();
  return block;
}
// Inlined, they look like a free() of what new returned (GCC 12).
[[gnu::noinline]] void operator delete(void *block) noexcept { free(block); }
[[gnu::noinline]] void operator delete(void *block, size_t) noexcept {
  free(block);
}

#endif  // MEMDIAG_TEST_OWN_NEW_H
