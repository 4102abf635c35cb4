#include "cdtls_library.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include <openssl/core_dispatch.h>
#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/provider.h>
#include <openssl/rand.h>

// The provider "retake" has one algorithm, a random generator that requests every byte from the
// peer that the calling thread serves. OpenSSL makes several generators (primary, and a public and
// a private one for each thread). None of them holds state of a peer, so one library context serves
// all peers of a process. A peer's draws consume that peer's random bytes in order.

static __thread const cdtls_randomness *current;

const cdtls_randomness *cdtls_randomness_use(const cdtls_randomness *randomness) {
  const cdtls_randomness *before = current;
  current = randomness;
  return before;
}

typedef struct {
  int state;
} generator;

static void *generator_new(void *provider, void *parent, const OSSL_DISPATCH *calls) {
  (void)provider, (void)parent, (void)calls;
  generator *made = calloc(1, sizeof *made);
  if (made == NULL) return NULL;
  made->state = EVP_RAND_STATE_UNINITIALISED;
  return made;
}

static void generator_free(void *self) { free(self); }

static int generator_instantiate(void *self, unsigned strength, int resistance,
                                 const unsigned char *text, size_t length,
                                 const OSSL_PARAM *parameters) {
  (void)strength, (void)resistance, (void)text, (void)length, (void)parameters;
  ((generator *)self)->state = EVP_RAND_STATE_READY;
  return 1;
}

static int generator_uninstantiate(void *self) {
  ((generator *)self)->state = EVP_RAND_STATE_UNINITIALISED;
  return 1;
}

static int generator_generate(void *self, unsigned char *out, size_t count, unsigned strength,
                              int resistance, const unsigned char *extra, size_t length) {
  (void)self, (void)strength, (void)resistance, (void)extra, (void)length;
  // Without a current source the draw fails, since its value would be missing from every take.
  return current != NULL && current->draw(current->user, out, count);
}

static int generator_reseed(void *self, int resistance, const unsigned char *entropy,
                            size_t entropy_length, const unsigned char *extra, size_t length) {
  (void)self, (void)resistance, (void)entropy, (void)entropy_length, (void)extra, (void)length;
  return 1;
}

// A generator has no state that a draw changes, so the locks that OpenSSL insists on may be empty.
static int generator_enable_locking(void *self) { return self != NULL; }

static int generator_lock(void *self) { return self != NULL; }

static void generator_unlock(void *self) { (void)self; }

static const OSSL_PARAM *generator_gettable(void *self, void *provider) {
  (void)self, (void)provider;
  static const OSSL_PARAM gettable[] = {OSSL_PARAM_int(OSSL_RAND_PARAM_STATE, NULL),
                                        OSSL_PARAM_uint(OSSL_RAND_PARAM_STRENGTH, NULL),
                                        OSSL_PARAM_size_t(OSSL_RAND_PARAM_MAX_REQUEST, NULL),
                                        OSSL_PARAM_END};
  return gettable;
}

static int generator_get(void *self, OSSL_PARAM parameters[]) {
  OSSL_PARAM *wanted = OSSL_PARAM_locate(parameters, OSSL_RAND_PARAM_STATE);
  if (wanted != NULL && !OSSL_PARAM_set_int(wanted, ((generator *)self)->state)) return 0;
  wanted = OSSL_PARAM_locate(parameters, OSSL_RAND_PARAM_STRENGTH);
  if (wanted != NULL && !OSSL_PARAM_set_uint(wanted, 256)) return 0;
  wanted = OSSL_PARAM_locate(parameters, OSSL_RAND_PARAM_MAX_REQUEST);
  return wanted == NULL || OSSL_PARAM_set_size_t(wanted, 1 << 16);
}

#define ENTRY(identifier, function) {identifier, (void (*)(void))function}

static const OSSL_DISPATCH generator_calls[] = {
    ENTRY(OSSL_FUNC_RAND_NEWCTX, generator_new),
    ENTRY(OSSL_FUNC_RAND_FREECTX, generator_free),
    ENTRY(OSSL_FUNC_RAND_INSTANTIATE, generator_instantiate),
    ENTRY(OSSL_FUNC_RAND_UNINSTANTIATE, generator_uninstantiate),
    ENTRY(OSSL_FUNC_RAND_GENERATE, generator_generate),
    ENTRY(OSSL_FUNC_RAND_RESEED, generator_reseed),
    ENTRY(OSSL_FUNC_RAND_ENABLE_LOCKING, generator_enable_locking),
    ENTRY(OSSL_FUNC_RAND_LOCK, generator_lock),
    ENTRY(OSSL_FUNC_RAND_UNLOCK, generator_unlock),
    ENTRY(OSSL_FUNC_RAND_GETTABLE_CTX_PARAMS, generator_gettable),
    ENTRY(OSSL_FUNC_RAND_GET_CTX_PARAMS, generator_get),
    {0, NULL}};

static const OSSL_ALGORITHM generators[] = {
    {"RETAKE-RAND", "provider=retake", generator_calls, "Randomness of the peer at work"},
    {NULL, NULL, NULL, NULL}};

static const OSSL_ALGORITHM *provider_query(void *self, int operation, int *no_cache) {
  (void)self;
  *no_cache = 0;
  return operation == OSSL_OP_RAND ? generators : NULL;
}

static const OSSL_DISPATCH provider_calls[] = {
    ENTRY(OSSL_FUNC_PROVIDER_QUERY_OPERATION, provider_query),
    {0, NULL}};

static int provider_init(const OSSL_CORE_HANDLE *handle, const OSSL_DISPATCH *from_core,
                         const OSSL_DISPATCH **to_core, void **state) {
  (void)handle, (void)from_core;
  *state = NULL;
  *to_core = provider_calls;
  return 1;
}

static OSSL_LIB_CTX *shared;
static pthread_once_t shared_once = PTHREAD_ONCE_INIT;

static void make_shared(void) {
  OPENSSL_init_ssl(OPENSSL_INIT_NO_LOAD_CONFIG, NULL);
  OSSL_LIB_CTX *context = OSSL_LIB_CTX_new();
  if (context == NULL) return;
  OSSL_PROVIDER *randomness = NULL;
  OSSL_PROVIDER *algorithms = NULL;
  if (OSSL_PROVIDER_add_builtin(context, "retake", provider_init)) {
    randomness = OSSL_PROVIDER_load(context, "retake");
    algorithms = OSSL_PROVIDER_load(context, "default");
  }
  if (randomness != NULL && algorithms != NULL
      && RAND_set_DRBG_type(context, "RETAKE-RAND", "provider=retake", NULL, NULL)) {
    shared = context;
    return;
  }
  // A context that is freed with its providers loaded leaks them.
  if (algorithms != NULL) OSSL_PROVIDER_unload(algorithms);
  if (randomness != NULL) OSSL_PROVIDER_unload(randomness);
  OSSL_LIB_CTX_free(context);
}

OSSL_LIB_CTX *cdtls_library_shared(void) {
  pthread_once(&shared_once, make_shared);
  return shared;
}

int cdtls_library_error(char *text, size_t size) {
  unsigned long code = ERR_get_error();
  ERR_clear_error();
  if (size == 0) return code != 0;
  text[0] = 0;
  if (code == 0) return 0;
  const char *reason = ERR_reason_error_string(code);
  if (reason != NULL) {
    snprintf(text, size, "%s", reason);
  } else {
    snprintf(text, size, "OpenSSL error %08lX", code);
  }
  return 1;
}
