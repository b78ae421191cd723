# make reads this file after jemalloc's Makefile, in the same folder: one more object of
# the static library, compiled like jemalloc's own.
internals := mysys/memdiag/jemalloc/internals
lib/libjemalloc.a: $(internals).o
$(internals).o: $(internals).c $(internals).h include/jemalloc/internal/private_namespace.h
	$(CC) $(CFLAGS) -c $(CPPFLAGS) -I. $(CTARGET) $<
