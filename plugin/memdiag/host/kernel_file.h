/*
  Reads a file of /proc, /sys or of a control group as a whole.
*/

#ifndef MEMDIAG_KERNEL_FILE_H
#define MEMDIAG_KERNEL_FILE_H

#include <string>

namespace memdiag::kernel_file {

/** Appends a file's content to a text. What is too large to be such a file is
EFBIG. @return 0 or an errno
@throws std::bad_alloc */
int read(const std::string &path, std::string *text);

}  // namespace memdiag::kernel_file

#endif  // MEMDIAG_KERNEL_FILE_H
