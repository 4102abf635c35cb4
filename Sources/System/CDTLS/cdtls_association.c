#include "cdtls_association.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/srtp.h>
#include <openssl/x509.h>

#include "cdtls_certificate.h"
#include "cdtls_clock.h"

// The negotiated options are fixed here rather than left to OpenSSL's defaults or a configuration
// file, so that the bytes on the wire depend only on the version of OpenSSL.
static const char ciphers[] =
    "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256:"
    "ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-RSA-CHACHA20-POLY1305:"
    "ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-RSA-AES256-GCM-SHA384:"
    "ECDHE-ECDSA-AES128-SHA:ECDHE-RSA-AES128-SHA:"
    "ECDHE-ECDSA-AES256-SHA:ECDHE-RSA-AES256-SHA";
// With other curves, OpenSSL may draw blinding values, and how many depends on the processor.
static const char groups[] = "X25519:P-256";
static const char signatures[] =
    "ECDSA+SHA256:RSA-PSS+SHA256:RSA+SHA256:ECDSA+SHA384:RSA-PSS+SHA384:RSA+SHA384:"
    "ECDSA+SHA512:RSA-PSS+SHA512:RSA+SHA512";

/// The time-out that OpenSSL assumes, and how far the clock is moved to trigger it.
#define TIMEOUT_US 60000000u
#define TIMEOUT_PASSES_S 120
/// The start of the frozen clock; any positive time works.
#define CLOCK_START_S (1 << 30)
/// The maximum length of a peer's certificate chain, in bytes.
#define CERTIFICATES_MAXIMUM (16 * 1024)
/// The maximum number of local certificates: one for each type of key.
#define OWN_CERTIFICATES_MAXIMUM 2

struct cdtls_association {
  cdtls_callbacks callbacks;
  cdtls_randomness randomness;
  OSSL_LIB_CTX *library;
  EVP_PKEY *keys[OWN_CERTIFICATES_MAXIMUM];
  X509 *certificates[OWN_CERTIFICATES_MAXIMUM];
  size_t certificate_count;
  SSL_CTX *context;
  SSL *connection;
  cdtls_frozen_clock clock;
  /// The datagram that OpenSSL has not read yet, if any.
  const uint8_t *input;
  size_t input_length;
  long mtu;
  int is_armed;
  uint32_t flights;
};

// ---- A BIO that preserves datagram boundaries.

static int bio_write(BIO *bio, const char *bytes, int count) {
  cdtls_association *dtls = BIO_get_data(bio);
  BIO_clear_retry_flags(bio);
  if (count > 0) {
    dtls->callbacks.send(dtls->callbacks.user, (const uint8_t *)bytes, (size_t)count);
  }
  return count;
}

static int bio_read(BIO *bio, char *bytes, int capacity) {
  cdtls_association *dtls = BIO_get_data(bio);
  BIO_clear_retry_flags(bio);
  if (dtls->input == NULL || capacity <= 0) {
    BIO_set_retry_read(bio);
    return -1;
  }
  // As with a socket, bytes that do not fit are lost.
  size_t count = dtls->input_length < (size_t)capacity ? dtls->input_length : (size_t)capacity;
  memcpy(bytes, dtls->input, count);
  dtls->input = NULL;
  return (int)count;
}

/// Records that OpenSSL started or stopped its retransmission timer.
static void note_timer(cdtls_association *dtls, const struct timeval *deadline) {
  int is_armed = deadline->tv_sec != 0 || deadline->tv_usec != 0;
  if (is_armed && !dtls->is_armed) dtls->flights++;
  dtls->is_armed = is_armed;
}

static long bio_control(BIO *bio, int command, long number, void *pointer) {
  (void)number;
  cdtls_association *dtls = BIO_get_data(bio);
  switch (command) {
    case BIO_CTRL_FLUSH:
    case BIO_CTRL_DUP:
      return 1;
    case BIO_CTRL_DGRAM_QUERY_MTU:
    case BIO_CTRL_DGRAM_GET_FALLBACK_MTU:
      return dtls->mtu;
    case BIO_CTRL_DGRAM_SET_NEXT_TIMEOUT:
      note_timer(dtls, pointer);
      return 1;
    default:
      return 0;
  }
}

static BIO_METHOD *datagram_method;
static pthread_once_t datagram_method_once = PTHREAD_ONCE_INIT;

static void make_datagram_method(void) {
  BIO_METHOD *method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "datagrams");
  if (method == NULL) return;
  BIO_meth_set_write(method, bio_write);
  BIO_meth_set_read(method, bio_read);
  BIO_meth_set_ctrl(method, bio_control);
  datagram_method = method;
}

// ---- The association.

/// Accepts any chain and dates, which are meaningless in WebRTC; the owner compares the
/// fingerprint.
static int verify(X509_STORE_CTX *store, void *argument) {
  cdtls_association *dtls = argument;
  X509 *certificate = X509_STORE_CTX_get0_cert(store);
  unsigned char *bytes = NULL;
  int count = certificate == NULL ? -1 : i2d_X509(certificate, &bytes);
  int accepted = count > 0
                 && dtls->callbacks.accept(dtls->callbacks.user, bytes, (size_t)count);
  OPENSSL_free(bytes);
  X509_STORE_CTX_set_error(store, accepted ? X509_V_OK : X509_V_ERR_CERT_REJECTED);
  return accepted;
}

/// Adds all certificates to the context; the cipher suite decides which one is sent.
static int use_certificates(cdtls_association *dtls) {
  for (size_t index = 0; index < dtls->certificate_count; index++) {
    if (SSL_CTX_use_certificate(dtls->context, dtls->certificates[index]) != 1
        || SSL_CTX_use_PrivateKey(dtls->context, dtls->keys[index]) != 1) {
      return 0;
    }
  }
  return dtls->certificate_count > 0;
}

static int configure(cdtls_association *dtls, const char *srtp_profiles) {
  SSL_CTX *context = dtls->context;
  SSL_CTX_set_security_level(context, 1);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_clear_options(context, SSL_CTX_get_options(context));
  // Session tickets are off, because they would contain the date.
  SSL_CTX_set_options(context, SSL_OP_NO_TICKET | SSL_OP_NO_QUERY_MTU | SSL_OP_NO_RENEGOTIATION
                                   | SSL_OP_NO_COMPRESSION | SSL_OP_CIPHER_SERVER_PREFERENCE);
  SSL_CTX_set_max_cert_list(context, CERTIFICATES_MAXIMUM);
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
  SSL_CTX_set_cert_verify_callback(context, verify, dtls);
  return SSL_CTX_set_min_proto_version(context, DTLS1_2_VERSION)
         && SSL_CTX_set_max_proto_version(context, DTLS1_2_VERSION)
         && SSL_CTX_set_cipher_list(context, ciphers)
         && SSL_CTX_set1_groups_list(context, groups)
         && SSL_CTX_set1_sigalgs_list(context, signatures)
         && use_certificates(dtls)
         // A data-only transport offers no use_srtp (RFC 5764 section 4.1).
         && (*srtp_profiles == 0 || SSL_CTX_set_tlsext_use_srtp(context, srtp_profiles) == 0);
}

/// The thread's clock and randomness from before a call, restored after it.
typedef struct {
  cdtls_frozen_clock *clock;
  const cdtls_randomness *randomness;
} surroundings;

/// Activates an association's own clock and randomness.
static surroundings enter(cdtls_association *dtls) {
  surroundings before = {cdtls_clock_freeze(&dtls->clock),
                         cdtls_randomness_use(&dtls->randomness)};
  return before;
}

static void leave(surroundings before) {
  cdtls_randomness_use(before.randomness);
  cdtls_clock_freeze(before.clock);
}

cdtls_association *cdtls_new(const cdtls_callbacks *callbacks) {
  pthread_once(&datagram_method_once, make_datagram_method);
  OSSL_LIB_CTX *library = cdtls_library_shared();
  if (datagram_method == NULL || library == NULL) return NULL;
  cdtls_association *dtls = calloc(1, sizeof *dtls);
  if (dtls == NULL) return NULL;
  dtls->callbacks = *callbacks;
  dtls->randomness.draw = callbacks->draw;
  dtls->randomness.user = callbacks->user;
  dtls->library = library;
  dtls->clock.seconds = CLOCK_START_S;
  ERR_clear_error();
  return dtls;
}

// The order in which the next two functions draw random bytes is part of every take.

X509 *cdtls_add_certificate(cdtls_association *dtls, int is_rsa, int64_t begin, int64_t end) {
  if (dtls->certificate_count == OWN_CERTIFICATES_MAXIMUM || dtls->context != NULL) return NULL;
  for (size_t index = 0; index < dtls->certificate_count; index++) {
    if (EVP_PKEY_is_a(dtls->keys[index], is_rsa ? "RSA" : "EC")) return NULL;
  }
  surroundings before = enter(dtls);
  EVP_PKEY *key = cdtls_key_new(dtls->library, is_rsa);
  X509 *certificate =
      key == NULL ? NULL : cdtls_certificate_new(dtls->library, key, begin, end);
  leave(before);
  if (certificate == NULL) {
    EVP_PKEY_free(key);
    return NULL;
  }
  dtls->keys[dtls->certificate_count] = key;
  dtls->certificates[dtls->certificate_count] = certificate;
  dtls->certificate_count++;
  return certificate;
}

int cdtls_prepare(cdtls_association *dtls, const char *srtp_profiles) {
  if (dtls->context != NULL) return 0;
  surroundings before = enter(dtls);
  dtls->context = SSL_CTX_new_ex(dtls->library, NULL, DTLS_method());
  int prepared = dtls->context != NULL && configure(dtls, srtp_profiles);
  leave(before);
  return prepared;
}

void cdtls_free(cdtls_association *dtls) {
  if (dtls == NULL) return;
  surroundings before = enter(dtls);
  SSL_free(dtls->connection);
  SSL_CTX_free(dtls->context);
  for (size_t index = 0; index < dtls->certificate_count; index++) {
    X509_free(dtls->certificates[index]);
    EVP_PKEY_free(dtls->keys[index]);
  }
  leave(before);
  free(dtls);
}

SSL *cdtls_connection(const cdtls_association *dtls) { return dtls->connection; }

X509 *cdtls_issuer(const cdtls_association *dtls, int index) {
  if (dtls->connection == NULL) return NULL;
  STACK_OF(X509) *chain = SSL_get_peer_cert_chain(dtls->connection);
  // On a client, the chain begins with the server's certificate; on a server, the chain does not
  // include the client's certificate.
  int place = index + (SSL_is_server(dtls->connection) ? 0 : 1);
  return chain != NULL && index >= 0 && place < sk_X509_num(chain) ? sk_X509_value(chain, place)
                                                                   : NULL;
}

uint32_t cdtls_flight(const cdtls_association *dtls) {
  return dtls->is_armed ? dtls->flights : 0;
}

uint32_t cdtls_clock_reads(const cdtls_association *dtls) { return dtls->clock.reads; }

static unsigned timeout(SSL *connection, unsigned before) {
  (void)connection, (void)before;
  return TIMEOUT_US;
}

int cdtls_start(cdtls_association *dtls, int is_server, long mtu) {
  if (dtls->connection != NULL) return 0;
  surroundings before = enter(dtls);
  ERR_clear_error();
  dtls->mtu = mtu;
  SSL *connection = SSL_new(dtls->context);
  BIO *bio = BIO_new(datagram_method);
  int started = connection != NULL && bio != NULL;
  if (started) {
    BIO_set_data(bio, dtls);
    BIO_set_init(bio, 1);
    SSL_set_bio(connection, bio, bio);
    SSL_set_mtu(connection, mtu);
    DTLS_set_timer_cb(connection, timeout);
    if (is_server) {
      SSL_set_accept_state(connection);
    } else {
      SSL_set_connect_state(connection);
    }
    dtls->connection = connection;
  } else {
    BIO_free(bio);
    SSL_free(connection);
  }
  leave(before);
  return started;
}

void cdtls_reset(cdtls_association *dtls) {
  surroundings before = enter(dtls);
  SSL_free(dtls->connection);
  dtls->connection = NULL;
  dtls->input = NULL;
  dtls->is_armed = 0;
  leave(before);
}

/// Passes a datagram to OpenSSL's input, and activates the association.
static surroundings enter_with(cdtls_association *dtls, const uint8_t *datagram, size_t length) {
  dtls->input = length > 0 ? datagram : NULL;
  dtls->input_length = length;
  ERR_clear_error();
  return enter(dtls);
}

/// Releases the datagram, whose bytes are borrowed, and restores the thread's state.
static void leave_without(cdtls_association *dtls, surroundings before) {
  dtls->input = NULL;
  leave(before);
}

/// Converts an unsuccessful return value of OpenSSL to the outcome of a call.
static int outcome(SSL *connection, int value) {
  switch (SSL_get_error(connection, value)) {
    case SSL_ERROR_WANT_READ:
      return CDTLS_WAITING;
    case SSL_ERROR_ZERO_RETURN:
      return CDTLS_CLOSED;
    default:
      return CDTLS_FAILED;
  }
}

int cdtls_handshake(cdtls_association *dtls, const uint8_t *datagram, size_t length) {
  surroundings before = enter_with(dtls, datagram, length);
  int value = SSL_do_handshake(dtls->connection);
  int result = value == 1 ? CDTLS_DONE : outcome(dtls->connection, value);
  leave_without(dtls, before);
  return result;
}

int cdtls_read(cdtls_association *dtls, const uint8_t *datagram, size_t length, uint8_t *data,
                       size_t capacity) {
  surroundings before = enter_with(dtls, datagram, length);
  size_t count = 0;
  int value = SSL_read_ex(dtls->connection, data, capacity, &count);
  int result = value == 1 ? (int)count : outcome(dtls->connection, value);
  leave_without(dtls, before);
  return result;
}

int cdtls_write(cdtls_association *dtls, const uint8_t *data, size_t length) {
  surroundings before = enter_with(dtls, NULL, 0);
  size_t count = 0;
  int value = SSL_write_ex(dtls->connection, data, length, &count);
  leave_without(dtls, before);
  return value == 1;
}

void cdtls_shutdown(cdtls_association *dtls) {
  surroundings before = enter_with(dtls, NULL, 0);
  SSL_shutdown(dtls->connection);
  ERR_clear_error();
  leave_without(dtls, before);
}

int cdtls_retransmit(cdtls_association *dtls) {
  if (!dtls->is_armed) return 0;
  surroundings before = enter_with(dtls, NULL, 0);
  dtls->clock.seconds += TIMEOUT_PASSES_S;
  long value = DTLSv1_handle_timeout(dtls->connection);
  leave_without(dtls, before);
  return value > 0 ? 1 : value == 0 ? 0 : CDTLS_FAILED;
}
