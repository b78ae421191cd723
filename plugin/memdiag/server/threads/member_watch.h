/*
  Gives figures of memory to the component that expels members of a group
  (sql/memdiag/member.h), from start() to stop(). Before and after, the
  component has the machine's figures.

  If the use is above the component's limit, pools with at least a megabyte of
  unused pages are purged first, with the reason `pressure` in MEMDIAG_PURGES.
  The component asks every five seconds.

  Threads: any. stop() waits for an answer that is under way.
  Errors: if figures cannot be read, or there is no memory for a few strings,
  the component keeps the machine's figures.
*/

#ifndef MEMDIAG_MEMBER_WATCH_H
#define MEMDIAG_MEMBER_WATCH_H

namespace memdiag::member_watch {

void start();
void stop();

}  // namespace memdiag::member_watch

#endif  // MEMDIAG_MEMBER_WATCH_H
