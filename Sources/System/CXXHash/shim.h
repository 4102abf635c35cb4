#include <xxhash.h>
#if defined(__x86_64__)
// This header's functions choose among SSE2, AVX2 and AVX-512 when they are called; the digests are
// the same.
#include <xxh_x86dispatch.h>
#endif
