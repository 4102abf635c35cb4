#include "cdtls_certificate.h"

#include <openssl/bn.h>
#include <openssl/evp.h>
#include <openssl/rand.h>

EVP_PKEY *cdtls_key_new(OSSL_LIB_CTX *library, int is_rsa) {
  return is_rsa ? EVP_PKEY_Q_keygen(library, NULL, "RSA", (size_t)2048)
                : EVP_PKEY_Q_keygen(library, NULL, "EC", "P-256");
}

/// Sets a positive serial number of 8 drawn bytes.
static int set_serial(X509 *certificate, OSSL_LIB_CTX *library) {
  unsigned char bytes[8];
  if (RAND_bytes_ex(library, bytes, sizeof bytes, 0) != 1) return 0;
  bytes[0] = (unsigned char)((bytes[0] & 0x7f) | 1);
  BIGNUM *number = BN_bin2bn(bytes, sizeof bytes, NULL);
  int done = number != NULL
             && BN_to_ASN1_INTEGER(number, X509_get_serialNumber(certificate)) != NULL;
  BN_free(number);
  return done;
}

/// Sets subject and issuer to the name that browsers use.
static int set_names(X509 *certificate) {
  X509_NAME *name = X509_NAME_new();
  int done = name != NULL
             && X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
                                           (const unsigned char *)"WebRTC", -1, -1, 0)
             && X509_set_subject_name(certificate, name)
             && X509_set_issuer_name(certificate, name);
  X509_NAME_free(name);
  return done;
}

X509 *cdtls_certificate_new(OSSL_LIB_CTX *library, EVP_PKEY *key, int64_t begin, int64_t end) {
  X509 *certificate = X509_new_ex(library, NULL);
  if (certificate == NULL) return NULL;
  if (set_serial(certificate, library) && X509_set_version(certificate, X509_VERSION_3)
      && ASN1_TIME_set(X509_getm_notBefore(certificate), (time_t)begin) != NULL
      && ASN1_TIME_set(X509_getm_notAfter(certificate), (time_t)end) != NULL
      && X509_set_pubkey(certificate, key) && set_names(certificate)
      && X509_sign(certificate, key, EVP_sha256())) {
    return certificate;
  }
  X509_free(certificate);
  return NULL;
}
