#include <xxhash.h>
#if defined(__x86_64__)
// Chooses among SSE2, AVX2 and AVX-512 when it is called; the digests are the same.
#include <xxh_x86dispatch.h>
#endif
