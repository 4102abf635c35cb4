#include "cdtls_cpu.h"

#include <pthread.h>
#include <string.h>

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#elif defined(__linux__)
#include <sys/auxv.h>
#endif

static char features[512];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void add(const char *name) {
  size_t used = strlen(features);
  size_t length = strlen(name);
  if (used + length + 2 > sizeof features) return;
  if (used > 0) features[used++] = ' ';
  memcpy(features + used, name, length + 1);
}

#if defined(__x86_64__) || defined(__i386__)
/// Adds features that __builtin_cpu_supports does not know, from their bits in CPUID leaf 7.
static void add_leaf7(void) {
  unsigned a, b, c, d;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return;
  if (b & (1u << 19)) add("adx");
  if (b & (1u << 29)) add("sha_ni");
  if (c & (1u << 9)) add("vaes");
}

static void find(void) {
  __builtin_cpu_init();
#if defined(__x86_64__)
  add("x86_64");
#else
  add("i386");
#endif
  // The builtin only accepts literals, and checks whether the OS saves the wide registers.
  if (__builtin_cpu_supports("sse2")) add("sse2");
  if (__builtin_cpu_supports("sse3")) add("sse3");
  if (__builtin_cpu_supports("ssse3")) add("ssse3");
  if (__builtin_cpu_supports("sse4.1")) add("sse4.1");
  if (__builtin_cpu_supports("sse4.2")) add("sse4.2");
  if (__builtin_cpu_supports("popcnt")) add("popcnt");
  if (__builtin_cpu_supports("aes")) add("aes");
  if (__builtin_cpu_supports("pclmul")) add("pclmul");
  if (__builtin_cpu_supports("avx")) add("avx");
  if (__builtin_cpu_supports("fma")) add("fma");
  if (__builtin_cpu_supports("bmi")) add("bmi");
  if (__builtin_cpu_supports("bmi2")) add("bmi2");
  if (__builtin_cpu_supports("avx2")) add("avx2");
  if (__builtin_cpu_supports("avx512f")) add("avx512f");
  if (__builtin_cpu_supports("avx512bw")) add("avx512bw");
  if (__builtin_cpu_supports("avx512dq")) add("avx512dq");
  if (__builtin_cpu_supports("avx512vl")) add("avx512vl");
  if (__builtin_cpu_supports("avx512ifma")) add("avx512ifma");
  if (__builtin_cpu_supports("avx512vbmi")) add("avx512vbmi");
  if (__builtin_cpu_supports("avx512vnni")) add("avx512vnni");
  if (__builtin_cpu_supports("gfni")) add("gfni");
  if (__builtin_cpu_supports("vpclmulqdq")) add("vpclmulqdq");
  add_leaf7();
}
#elif defined(__aarch64__) && defined(__linux__)
static void find(void) {
  // Bits of AT_HWCAP as defined by the Linux ABI for arm64.
  static const struct { unsigned bit; const char *name; } known[] = {
    {1, "asimd"}, {3, "aes"}, {4, "pmull"}, {5, "sha1"}, {6, "sha2"}, {7, "crc32"},
    {10, "asimdhp"}, {17, "sha3"}, {20, "asimddp"}, {21, "sha512"}, {22, "sve"},
  };
  unsigned long bits = getauxval(AT_HWCAP);
  add("aarch64");
  for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
    if (bits >> known[i].bit & 1) add(known[i].name);
  }
}
#else
static void find(void) { add("unknown"); }
#endif

const char *cdtls_cpu_features(void) {
  pthread_once(&once, find);
  return features;
}
