/// Self-signed certificates, which the remote peer verifies only by their fingerprints.
#ifndef CDTLS_CERTIFICATE_H
#define CDTLS_CERTIFICATE_H

#include <stdint.h>

#include <openssl/x509.h>

/// Draws a P-256 key, or an RSA key of 2048 bits, in a library context; NULL if OpenSSL fails.
EVP_PKEY *cdtls_key_new(OSSL_LIB_CTX *library, int is_rsa);

/// Creates a self-signed certificate with a drawn serial number, valid between two Unix times in
/// seconds; NULL if OpenSSL fails.
X509 *cdtls_certificate_new(OSSL_LIB_CTX *library, EVP_PKEY *key, int64_t begin, int64_t end);

#endif
