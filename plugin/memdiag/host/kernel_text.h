/*
  Parsers for the texts of /proc, /sys and control groups. They know formats;
  host.h knows which file has which figures.

  Errors: an empty optional means that the text has another form. A number that
  does not fit is no number. Any text is safe to parse. Only std::bad_alloc is
  thrown.
  Ownership: a std::string_view refers into the given text.
  Threads: pure functions.
  Formats: proc(5), cgroups(7), and the kernel's Documentation:
  admin-guide/cgroup-v1/memory.rst, admin-guide/cgroup-v2.rst,
  accounting/psi.rst, filesystems/proc.rst (mountinfo).
*/

#ifndef MEMDIAG_KERNEL_TEXT_H
#define MEMDIAG_KERNEL_TEXT_H

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace memdiag::kernel_text {

/** Removes the part before the separator from the text.
@return false: the text is empty */
bool cut(std::string_view *text, char separator, std::string_view *part);

/** The text without blanks and line ends around it. */
std::string_view trim(std::string_view text);

/** A text that consists of one decimal number and blanks.
Instantiated for uint64_t, int64_t and double (no exponents, no infinity). */
template <typename T>
std::optional<T> number(std::string_view text);

/** A number in bytes, or one followed by kB. */
std::optional<uint64_t> amount(std::string_view text);

constexpr uint64_t unlimited = std::numeric_limits<uint64_t>::max();
/** A control group's limit in bytes, or `unlimited`: version 2 says "max",
version 1 the largest number of whole pages there is. */
std::optional<uint64_t> limit(std::string_view text);

/** The one word in brackets among several; or "none" alone. */
std::optional<std::string_view> chosen(std::string_view text);

/** The text behind a key at the beginning of a line. Blanks or a colon end the
key. Empty: there is no such line. */
std::optional<std::string_view> value_of(std::string_view text,
                                         std::string_view key);
/** The amount behind a key. */
std::optional<uint64_t> amount_of(std::string_view text, std::string_view key);

/** The value of "name=value" among words between blanks. */
std::optional<std::string_view> field(std::string_view text,
                                      std::string_view name);

/** The nth word of /proc/<pid>/stat, counted from 1 as proc(5) does, behind
the program's name (2), which may have blanks and parentheses. */
std::optional<std::string_view> stat_field(std::string_view text, unsigned n);

/** A list such as 0-2,5 of NUMA nodes. */
std::optional<std::vector<unsigned>> nodes(std::string_view text);

/** A line of mountinfo. */
struct Mount {
  /** The mounted folder of the file system. */
  std::string root;
  std::string point;
  std::string options;
  std::string type;
  std::string super_options;
};
std::optional<Mount> mount(std::string_view line);

/** @return true: the list, separated by commas, has the word */
bool has_word(std::string_view list, std::string_view word);

/** The control group that accounts for memory, as /proc/<pid>/cgroup says. */
struct Memory_cgroup {
  /** 0: there is none. */
  int version;
  std::string_view path;
};
std::optional<Memory_cgroup> memory_cgroup(std::string_view text);

/** The rest of `path` below `folder`, beginning with a slash; "" where they are
the same. Empty: the path does not lie in the folder. For groups above a
namespace's root the kernel writes "/.."; such paths are compared as they are.
*/
std::optional<std::string_view> below(std::string_view folder,
                                      std::string_view path);

/** The page cache of a control group that the kernel can drop at once, whatever
else happens: it is clean, and no process has mapped it. Active page cache is
dropped too when memory is short. Mapped pages have the programs' code. Pages
that are dirty and mapped are deducted twice.
@param version  of control groups, 1 or 2
@return empty: a figure is missing */
std::optional<uint64_t> clean_cache(std::string_view memory_stat, int version);

/** The use of a control group without memory that the kernel takes back: page
cache that is idle (inactive_file) or that it can drop at once (clean_cache()),
whichever is more, and reclaimable slab. Any group that reads or writes files
fills up with these.
@param memory_stat  the group's memory.stat; a missing figure counts as 0
@param version      of control groups, 1 or 2 */
uint64_t without_cache(uint64_t usage_bytes, std::string_view memory_stat,
                       int version);

}  // namespace memdiag::kernel_text

#endif  // MEMDIAG_KERNEL_TEXT_H
