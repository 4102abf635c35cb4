/// The processor features by which libraries select their code.
#ifndef CDTLS_CPU_H
#define CDTLS_CPU_H

/// Returns the processor's architecture and features in a fixed order, separated by spaces, such as
/// `x86_64 sse4.1 avx2`.
///
/// Codecs and crypto libraries choose their code by these features; a take stores the text, because
/// the exact bits of decoded media may depend on it. The string lives as long as the process.
const char *cdtls_cpu_features(void);

#endif
