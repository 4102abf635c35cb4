#include "csrtpciphers.h"

#include <stdlib.h>

#include <openssl/err.h>
#include <openssl/evp.h>
#include <srtp2/cipher.h>
#include <srtp2/srtp.h>

/// The number of salt bytes at the end of each libsrtp key (RFC 7714 section 12); only libsrtp uses
/// them.
#define SALT_LENGTH 12
#define KEY_128_LENGTH (16 + SALT_LENGTH)
#define KEY_256_LENGTH (32 + SALT_LENGTH)
#define LONG_TAG_LENGTH 16
#define SHORT_TAG_LENGTH 8

static const srtp_cipher_type_t gcm_128;
static const srtp_cipher_type_t gcm_256;

/// A cipher with its key, for one direction of one stream.
typedef struct {
  EVP_CIPHER_CTX *context;
  const EVP_CIPHER *cipher;
  int tag_length;
} gcm_state;

/// Returns a status, and clears the thread's OpenSSL errors: the next user of OpenSSL on the thread
/// would mistake an old error for its own.
static srtp_err_status_t failed(srtp_err_status_t status) {
  ERR_clear_error();
  return status;
}

static srtp_err_status_t gcm_dealloc(srtp_cipher_t *cipher) {
  if (cipher == NULL) return srtp_err_status_ok;
  gcm_state *state = cipher->state;
  if (state != NULL) EVP_CIPHER_CTX_free(state->context);
  free(state);
  free(cipher);
  return srtp_err_status_ok;
}

static srtp_err_status_t gcm_alloc(srtp_cipher_t **made, int key_length, int tag_length) {
  int is_long = key_length == KEY_256_LENGTH;
  if (!is_long && key_length != KEY_128_LENGTH) return srtp_err_status_bad_param;
  if (tag_length != LONG_TAG_LENGTH && tag_length != SHORT_TAG_LENGTH) {
    return srtp_err_status_bad_param;
  }
  srtp_cipher_t *cipher = calloc(1, sizeof *cipher);
  gcm_state *state = calloc(1, sizeof *state);
  EVP_CIPHER_CTX *context = EVP_CIPHER_CTX_new();
  if (cipher == NULL || state == NULL || context == NULL) {
    EVP_CIPHER_CTX_free(context);
    free(state);
    free(cipher);
    return failed(srtp_err_status_alloc_fail);
  }
  state->context = context;
  state->cipher = is_long ? EVP_aes_256_gcm() : EVP_aes_128_gcm();
  state->tag_length = tag_length;
  cipher->type = is_long ? &gcm_256 : &gcm_128;
  cipher->state = state;
  cipher->key_len = key_length;
  cipher->algorithm = is_long ? SRTP_AES_GCM_256 : SRTP_AES_GCM_128;
  *made = cipher;
  return srtp_err_status_ok;
}

static srtp_err_status_t gcm_init(void *cipher, const uint8_t *key) {
  gcm_state *state = cipher;
  return EVP_CipherInit_ex(state->context, state->cipher, NULL, key, NULL, 1) == 1
             ? srtp_err_status_ok
             : failed(srtp_err_status_init_fail);
}

static srtp_err_status_t gcm_set_iv(void *cipher, uint8_t *iv, srtp_cipher_direction_t direction) {
  gcm_state *state = cipher;
  if (direction == srtp_direction_any) return srtp_err_status_bad_param;
  // The key and its tables are kept.
  return EVP_CipherInit_ex(
             state->context, NULL, NULL, NULL, iv, direction == srtp_direction_encrypt) == 1
             ? srtp_err_status_ok
             : failed(srtp_err_status_init_fail);
}

static srtp_err_status_t gcm_set_aad(void *cipher, const uint8_t *bytes, uint32_t length) {
  gcm_state *state = cipher;
  int taken = 0;
  return EVP_CipherUpdate(state->context, NULL, &taken, bytes, (int)length) == 1
             ? srtp_err_status_ok
             : failed(srtp_err_status_algo_fail);
}

static srtp_err_status_t gcm_encrypt(void *cipher, uint8_t *bytes, unsigned int *length) {
  gcm_state *state = cipher;
  int made = 0;
  int last = 0;
  if (EVP_CipherUpdate(state->context, bytes, &made, bytes, (int)*length) != 1
      || EVP_CipherFinal_ex(state->context, bytes + made, &last) != 1) {
    return failed(srtp_err_status_cipher_fail);
  }
  *length = (unsigned int)(made + last);
  return srtp_err_status_ok;
}

static srtp_err_status_t gcm_get_tag(void *cipher, uint8_t *tag, uint32_t *length) {
  gcm_state *state = cipher;
  if (EVP_CIPHER_CTX_ctrl(state->context, EVP_CTRL_AEAD_GET_TAG, state->tag_length, tag) != 1) {
    return failed(srtp_err_status_algo_fail);
  }
  *length = (uint32_t)state->tag_length;
  return srtp_err_status_ok;
}

/// Decrypts bytes in place; the tag follows them and is included in `length`.
static srtp_err_status_t gcm_decrypt(void *cipher, uint8_t *bytes, unsigned int *length) {
  gcm_state *state = cipher;
  if (*length < (unsigned int)state->tag_length) return srtp_err_status_bad_param;
  int count = (int)*length - state->tag_length;
  int made = 0;
  int last = 0;
  if (EVP_CIPHER_CTX_ctrl(
          state->context, EVP_CTRL_AEAD_SET_TAG, state->tag_length, bytes + count) != 1
      || EVP_CipherUpdate(state->context, bytes, &made, bytes, count) != 1) {
    return failed(srtp_err_status_algo_fail);
  }
  if (EVP_CipherFinal_ex(state->context, bytes + made, &last) != 1) {
    return failed(srtp_err_status_auth_fail);
  }
  *length = (unsigned int)(made + last);
  return srtp_err_status_ok;
}

// Test cases 4 and 16 of the GCM specification (McGrew and Viega), with an arbitrary salt.

static const uint8_t key[KEY_256_LENGTH] = {
    0xfe, 0xff, 0xe9, 0x92, 0x86, 0x65, 0x73, 0x1c, 0x6d, 0x6a, 0x8f, 0x94, 0x67, 0x30, 0x83, 0x08,
    0xfe, 0xff, 0xe9, 0x92, 0x86, 0x65, 0x73, 0x1c, 0x6d, 0x6a, 0x8f, 0x94, 0x67, 0x30, 0x83, 0x08};

static uint8_t iv[12] = {
    0xca, 0xfe, 0xba, 0xbe, 0xfa, 0xce, 0xdb, 0xad, 0xde, 0xca, 0xf8, 0x88};

static const uint8_t aad[20] = {
    0xfe, 0xed, 0xfa, 0xce, 0xde, 0xad, 0xbe, 0xef, 0xfe, 0xed,
    0xfa, 0xce, 0xde, 0xad, 0xbe, 0xef, 0xab, 0xad, 0xda, 0xd2};

static const uint8_t plaintext[60] = {
    0xd9, 0x31, 0x32, 0x25, 0xf8, 0x84, 0x06, 0xe5, 0xa5, 0x59, 0x09, 0xc5, 0xaf, 0xf5, 0x26, 0x9a,
    0x86, 0xa7, 0xa9, 0x53, 0x15, 0x34, 0xf7, 0xda, 0x2e, 0x4c, 0x30, 0x3d, 0x8a, 0x31, 0x8a, 0x72,
    0x1c, 0x3c, 0x0c, 0x95, 0x95, 0x68, 0x09, 0x53, 0x2f, 0xcf, 0x0e, 0x24, 0x49, 0xa6, 0xb5, 0x25,
    0xb1, 0x6a, 0xed, 0xf5, 0xaa, 0x0d, 0xe6, 0x57, 0xba, 0x63, 0x7b, 0x39};

static const uint8_t ciphertext_128[76] = {
    0x42, 0x83, 0x1e, 0xc2, 0x21, 0x77, 0x74, 0x24, 0x4b, 0x72, 0x21, 0xb7, 0x84, 0xd0, 0xd4, 0x9c,
    0xe3, 0xaa, 0x21, 0x2f, 0x2c, 0x02, 0xa4, 0xe0, 0x35, 0xc1, 0x7e, 0x23, 0x29, 0xac, 0xa1, 0x2e,
    0x21, 0xd5, 0x14, 0xb2, 0x54, 0x66, 0x93, 0x1c, 0x7d, 0x8f, 0x6a, 0x5a, 0xac, 0x84, 0xaa, 0x05,
    0x1b, 0xa3, 0x0b, 0x39, 0x6a, 0x0a, 0xac, 0x97, 0x3d, 0x58, 0xe0, 0x91,
    0x5b, 0xc9, 0x4f, 0xbc, 0x32, 0x21, 0xa5, 0xdb, 0x94, 0xfa, 0xe9, 0x5a, 0xe7, 0x12, 0x1a, 0x47};

static const uint8_t ciphertext_256[76] = {
    0x52, 0x2d, 0xc1, 0xf0, 0x99, 0x56, 0x7d, 0x07, 0xf4, 0x7f, 0x37, 0xa3, 0x2a, 0x84, 0x42, 0x7d,
    0x64, 0x3a, 0x8c, 0xdc, 0xbf, 0xe5, 0xc0, 0xc9, 0x75, 0x98, 0xa2, 0xbd, 0x25, 0x55, 0xd1, 0xaa,
    0x8c, 0xb0, 0x8e, 0x48, 0x59, 0x0d, 0xbb, 0x3d, 0xa7, 0xb0, 0x8b, 0x10, 0x56, 0x82, 0x88, 0x38,
    0xc5, 0xf6, 0x1e, 0x63, 0x93, 0xba, 0x7a, 0x0a, 0xbc, 0xc9, 0xf6, 0x62,
    0x76, 0xfc, 0x6e, 0xce, 0x0f, 0x4e, 0x17, 0x68, 0xcd, 0xdf, 0x88, 0x53, 0xbb, 0x2d, 0x55, 0x1b};

static const srtp_cipher_test_case_t test_128 = {
    .key_length_octets = KEY_128_LENGTH,
    .key = key,
    .idx = iv,
    .plaintext_length_octets = sizeof plaintext,
    .plaintext = plaintext,
    .ciphertext_length_octets = sizeof ciphertext_128,
    .ciphertext = ciphertext_128,
    .aad_length_octets = sizeof aad,
    .aad = aad,
    .tag_length_octets = LONG_TAG_LENGTH,
};

static const srtp_cipher_test_case_t test_256 = {
    .key_length_octets = KEY_256_LENGTH,
    .key = key,
    .idx = iv,
    .plaintext_length_octets = sizeof plaintext,
    .plaintext = plaintext,
    .ciphertext_length_octets = sizeof ciphertext_256,
    .ciphertext = ciphertext_256,
    .aad_length_octets = sizeof aad,
    .aad = aad,
    .tag_length_octets = LONG_TAG_LENGTH,
};

static const srtp_cipher_type_t gcm_128 = {
    gcm_alloc,   gcm_dealloc, gcm_init,    gcm_set_aad,           gcm_encrypt,     gcm_decrypt,
    gcm_set_iv,  gcm_get_tag, "AES-128 GCM by OpenSSL", &test_128, SRTP_AES_GCM_128};

static const srtp_cipher_type_t gcm_256 = {
    gcm_alloc,   gcm_dealloc, gcm_init,    gcm_set_aad,           gcm_encrypt,     gcm_decrypt,
    gcm_set_iv,  gcm_get_tag, "AES-256 GCM by OpenSSL", &test_256, SRTP_AES_GCM_256};

int csrtpciphers_use_openssl(void) {
  return (srtp_replace_cipher_type(&gcm_128, SRTP_AES_GCM_128) == srtp_err_status_ok)
         + (srtp_replace_cipher_type(&gcm_256, SRTP_AES_GCM_256) == srtp_err_status_ok);
}
