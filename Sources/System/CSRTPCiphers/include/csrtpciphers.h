/// Ciphers of libsrtp that OpenSSL computes.
#ifndef CSRTPCIPHERS_H
#define CSRTPCIPHERS_H

/// Lets libsrtp use OpenSSL for AES in Galois/Counter Mode (RFC 7714), once and after `srtp_init`.
///
/// What Debian builds libsrtp with makes the tables of a key anew for each packet, which takes
/// several times as long as the packet. The bytes are the same: libsrtp tests a cipher that takes
/// the place of its own against both its vectors and ours, and keeps its own when it differs.
///
/// Gives how many ciphers were replaced, of two.
int csrtpciphers_use_openssl(void);

#endif
