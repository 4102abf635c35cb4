/// Ciphers of libsrtp implemented by OpenSSL.
#ifndef CSRTPCIPHERS_H
#define CSRTPCIPHERS_H

/// Makes libsrtp use OpenSSL for AES in Galois/Counter Mode (RFC 7714); call it once, after
/// `srtp_init`.
///
/// The library with which Debian builds libsrtp recomputes a key's tables for each packet, which
/// takes several times as long as the encryption itself. The bytes are the same: libsrtp tests a
/// replacement against its own test vectors and this module's, and keeps its own cipher if a test
/// fails.
///
/// Returns the number of ciphers replaced, at most two.
int csrtpciphers_use_openssl(void);

#endif
