/*
  Answers the component that expels members of a group (sql/memdiag_member.h)
  from start() to stop(). Before and after it has the machine's figures.

  Pools with a megabyte of unused pages or more are purged before a use above
  the component's limit is told, with the reason `pressure` in MEMDIAG_PURGES.
  The component asks every five seconds.

  Threads: any. stop() waits for an answer that is under way.
  Errors: figures that cannot be read, or no memory for a few strings, leave the
  machine's figures.
*/

#ifndef MEMDIAG_MEMBER_WATCH_H
#define MEMDIAG_MEMBER_WATCH_H

namespace memdiag::member_watch {

void start();
void stop();

}  // namespace memdiag::member_watch

#endif  // MEMDIAG_MEMBER_WATCH_H
