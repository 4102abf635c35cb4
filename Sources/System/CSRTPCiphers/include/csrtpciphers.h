/// Ciphers of libsrtp implemented by OpenSSL.
#ifndef CSRTPCIPHERS_H
#define CSRTPCIPHERS_H

/// Makes libsrtp use OpenSSL for AES in Galois/Counter Mode (RFC 7714); call it once, after
/// `srtp_init`.
///
/// The library that Debian builds libsrtp with recomputes the tables of a key for each packet,
/// which takes several times as long as the packet. The bytes are the same: libsrtp tests a
/// replacement against both its vectors and ours, and keeps its own cipher if it differs.
///
/// Returns how many ciphers were replaced, of two.
int csrtpciphers_use_openssl(void);

#endif
