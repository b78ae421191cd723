/*
  Lets mysqld run with glibc 2.34, whatever glibc the build machine has. The
  linker takes the newest version of a symbol, and the loader of an older
  system refuses the whole program. packaging/make/portable.py names a symbol
  that is too new.
*/

#ifdef __x86_64__

double hypot_of_libm(double x, double y);
__asm__(".symver _Z13hypot_of_libmdd, hypot@GLIBC_2.2.5");

// Geometry calls it. Hidden, so that the loader does not lead the call of the
// old version back to this one.
[[gnu::visibility("hidden")]] double hypot_here(double x,
                                                double y) asm("hypot");
double hypot_here(double x, double y) { return hypot_of_libm(x, y); }

#endif
