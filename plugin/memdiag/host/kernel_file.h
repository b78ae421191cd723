/*
  Reads a whole file of /proc, /sys or a control group. Threads: any; no state.
*/

#ifndef MEMDIAG_KERNEL_FILE_H
#define MEMDIAG_KERNEL_FILE_H

#include <string>

namespace memdiag::kernel_file {

/** Appends a file's content to a text.
@return 0, or an errno, when the text may have got a part of the content; EFBIG:
more than 64 MiB, too large to be such a file
@throws std::bad_alloc */
int read(const std::string &path, std::string *text);

}  // namespace memdiag::kernel_file

#endif  // MEMDIAG_KERNEL_FILE_H
