#!/bin/sh
# Makes icudata.o in the folder $2 from the archive libicudata.a ($1): only what regular
# expressions need, 4 MB of 31, the files that upstream's own copy of ICU has in extra/icu.
# icupkg comes with ICU's headers. CC names the compiler.
set -eu

PATH=$PATH:/usr/sbin
rm -rf "$2"
mkdir -p "$2/items" "$2/small"
cd "$2"
ar x "$1"
set -- icudt*_dat.o
name=${1%_dat.o}
objcopy -O binary --only-section=.rodata "$1" "$name.dat"
icupkg -l "$name.dat" | grep -E '^(brkitr/.*|(cnvalias|uemoji|ulayout|unames)\.icu)$' >list.txt
icupkg -x list.txt -d items "$name.dat"
# Its items begin with the file's name.
icupkg -a list.txt -s items new "small/$name.dat"
symbol=$(nm --defined-only "$1" | sed -n 's/.* R //p')
cat >icudata.S <<END
.section .rodata
.balign 16
.globl $symbol
.hidden $symbol
.type $symbol, %object
$symbol:
.incbin "small/$name.dat"
.size $symbol, . - $symbol
.section .note.GNU-stack, "", %progbits
END
$CC -c -o icudata.o icudata.S
rm -rf items small "$1" "$name.dat"
