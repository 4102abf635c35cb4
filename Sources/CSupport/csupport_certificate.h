/// Certificates of peers, which only their fingerprints vouch for.
#ifndef CSUPPORT_CERTIFICATE_H
#define CSUPPORT_CERTIFICATE_H

#include <stdint.h>

#include <openssl/x509.h>

/// Draws a P-256 key in a library context; NULL when OpenSSL refuses.
EVP_PKEY *csupport_key_new(OSSL_LIB_CTX *library);

/// Makes a self-signed certificate with a drawn serial number, valid from a day before until
/// 30 days after a Unix time in seconds; NULL when OpenSSL refuses.
X509 *csupport_certificate_new(OSSL_LIB_CTX *library, EVP_PKEY *key, int64_t unix_time);

#endif
