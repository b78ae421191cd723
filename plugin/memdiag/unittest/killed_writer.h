/*
  A process that writes again and again and is killed, wherever it is by then.

  Threads: the test's own.
*/

#ifndef MEMDIAG_KILLED_WRITER_H
#define MEMDIAG_KILLED_WRITER_H

#include <gtest/gtest.h>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>

namespace memdiag_test {

/** In a child: write(1), write(2) and so on. The child is killed once the call
of that number has returned, while it goes on with later ones. */
template <typename Write>
void kill_writer_after(uint64_t number, Write write) {
  int ends[2];
  ASSERT_EQ(0, pipe(ends));
  const pid_t writer = fork();
  if (writer == 0)
    for (uint64_t n = 1;; ++n) {
      write(n);
      if (n == number && ::write(ends[1], "", 1) != 1) _exit(1);
    }
  ASSERT_LT(0, writer);
  close(ends[1]);
  char byte;
  EXPECT_EQ(1, ::read(ends[0], &byte, 1)) << "it ended by itself";
  close(ends[0]);
  ASSERT_EQ(0, kill(writer, SIGKILL));
  int status;
  ASSERT_EQ(writer, waitpid(writer, &status, 0));
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(SIGKILL, WTERMSIG(status));
}

}  // namespace memdiag_test

#endif  // MEMDIAG_KILLED_WRITER_H
