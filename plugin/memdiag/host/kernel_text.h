/*
  Parsers for what the kernel writes in /proc, /sys and the files of a control
  group. They know formats, not files: host.h says which file has which figures.

  Errors: an empty optional is a text that is not what it should be, whatever it
  is; nothing is assumed of it. No figure is made up: a number that does not fit
  is no number. Only std::bad_alloc is thrown.
  Ownership: a std::string_view refers into the text that was given.
  Threads: pure functions.
  Formats: proc(5), cgroups(7), and the kernel's Documentation:
  admin-guide/cgroup-v1/memory.rst, admin-guide/cgroup-v2.rst,
  accounting/psi.rst, filesystems/proc.rst (mountinfo, numa_maps).
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

/** Takes what comes before the separator off the text.
@return false at the text's end */
bool cut(std::string_view *text, char separator, std::string_view *part);

/** Without blanks and ends of lines around it. */
std::string_view trim(std::string_view text);

/** A text that is a decimal number and nothing else, but for blanks.
Instantiated for uint64_t, int64_t and double (no exponents, no infinity). */
template <typename T>
std::optional<T> number(std::string_view text);

/** A number that may be followed by kB and is multiplied out then. */
std::optional<uint64_t> amount(std::string_view text);

constexpr uint64_t unlimited = std::numeric_limits<uint64_t>::max();
/** A control group's limit in bytes, or `unlimited`: version 2 says "max",
version 1 the largest number of whole pages there is. */
std::optional<uint64_t> limit(std::string_view text);

/** The word in brackets, of several to choose from; "none" needs none. */
std::optional<std::string_view> chosen(std::string_view text);

/** What follows a key at the beginning of a line; blanks or a colon end the
key. Empty if there is no such line. */
std::optional<std::string_view> value_of(std::string_view text,
                                         std::string_view key);
/** The amount that follows it. */
std::optional<uint64_t> amount_of(std::string_view text, std::string_view key);

/** What follows "name=" in words between blanks. */
std::optional<std::string_view> field(std::string_view text,
                                      std::string_view name);

/** The nth word of /proc/<pid>/stat, counted from 1 as proc(5) does, behind
the program's name (2), which may have blanks and parentheses. */
std::optional<std::string_view> stat_field(std::string_view text, unsigned n);

/** A list such as 0-2,5 of NUMA nodes. */
std::optional<std::vector<unsigned>> nodes(std::string_view text);

/** Adds a line of numa_maps to the bytes on each node.
@return false if it is none, and nothing was added */
bool add_node_bytes(std::string_view line, std::vector<uint64_t> *bytes);

/** A line of mountinfo. */
struct Mount {
  /** The folder of the file system that is mounted. */
  std::string root;
  std::string point;
  std::string options;
  std::string type;
  std::string super_options;
};
std::optional<Mount> mount(std::string_view line);

/** Whether a list between commas has the word. */
bool has_word(std::string_view list, std::string_view word);

/** The control group that accounts for memory, as /proc/<pid>/cgroup says. */
struct Memory_cgroup {
  /** 0: there is none. */
  int version;
  std::string_view path;
};
std::optional<Memory_cgroup> memory_cgroup(std::string_view text);

/** What `path` has behind `folder`, with a slash before it: "" where they are
the same. Empty when it does not lie there. Above a namespace's root the kernel
writes "/..": what lies there is found as long as both go up alike. */
std::optional<std::string_view> below(std::string_view folder,
                                      std::string_view path);

/** What a control group uses without what the kernel takes back before anything
else: page cache that is idle, and its own objects of files (slab), which fill
any group that reads or writes files.
@param memory_stat  the group's memory.stat; what it does not tell is used */
uint64_t without_idle_cache(uint64_t usage_bytes, std::string_view memory_stat);

}  // namespace memdiag::kernel_text

#endif  // MEMDIAG_KERNEL_TEXT_H
