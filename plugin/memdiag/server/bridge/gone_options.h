/*
  Options that this product had before 1.0. An option file that still has one
  does not keep the server from starting: the option is taken, does nothing, and
  the error log names it. They are no system variables.

  Threads: the one that starts the server. Errors: none.
*/

#ifndef MEMDIAG_GONE_OPTIONS_H
#define MEMDIAG_GONE_OPTIONS_H

struct SYS_VAR;

namespace memdiag::gone_options {

/** For the plugin's declaration. The server owns what it makes of it. */
extern SYS_VAR *options[];

/** A line of the error log for each that is set. @throws std::bad_alloc */
void name_those_set();

}  // namespace memdiag::gone_options

#endif  // MEMDIAG_GONE_OPTIONS_H
