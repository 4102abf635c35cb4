#include "csupport_library.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/core_dispatch.h>
#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/provider.h>
#include <openssl/rand.h>

// The provider "retake" has one algorithm, a random generator that asks the caller for every byte.
// OpenSSL makes several generators (primary, public, private, per thread); all of them share the
// provider's state, so that the order of draws is the order of bytes, whichever thread draws.

/// The state of the provider.
typedef struct {
  csupport_draw draw;
  void *user;
} provider_state;

/// One generator.
typedef struct {
  const provider_state *provider;
  int state;
} generator;

static void *generator_new(void *provider, void *parent, const OSSL_DISPATCH *calls) {
  (void)parent;
  (void)calls;
  generator *made = calloc(1, sizeof *made);
  if (made == NULL) return NULL;
  made->provider = provider;
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
  (void)strength, (void)resistance, (void)extra, (void)length;
  const provider_state *provider = ((generator *)self)->provider;
  return provider->draw != NULL && provider->draw(provider->user, out, count);
}

static int generator_reseed(void *self, int resistance, const unsigned char *entropy,
                            size_t entropy_length, const unsigned char *extra, size_t length) {
  (void)self, (void)resistance, (void)entropy, (void)entropy_length, (void)extra, (void)length;
  return 1;
}

// A peer works on one thread at a time, so the locks that OpenSSL insists on may be empty.
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
    {"RETAKE-RAND", "provider=retake", generator_calls, "Randomness of one peer"},
    {NULL, NULL, NULL, NULL}};

static const OSSL_ALGORITHM *provider_query(void *self, int operation, int *no_cache) {
  (void)self;
  *no_cache = 0;
  return operation == OSSL_OP_RAND ? generators : NULL;
}

static void provider_teardown(void *self) { free(self); }

static const OSSL_DISPATCH provider_calls[] = {
    ENTRY(OSSL_FUNC_PROVIDER_TEARDOWN, provider_teardown),
    ENTRY(OSSL_FUNC_PROVIDER_QUERY_OPERATION, provider_query),
    {0, NULL}};

static int provider_init(const OSSL_CORE_HANDLE *handle, const OSSL_DISPATCH *from_core,
                         const OSSL_DISPATCH **to_core, void **state) {
  (void)handle, (void)from_core;
  *state = calloc(1, sizeof(provider_state));
  *to_core = provider_calls;
  return *state != NULL;
}

int csupport_library_open(csupport_library *library, csupport_draw draw, void *user) {
  memset(library, 0, sizeof *library);
  OPENSSL_init_ssl(OPENSSL_INIT_NO_LOAD_CONFIG, NULL);
  ERR_clear_error();
  library->context = OSSL_LIB_CTX_new();
  if (library->context == NULL) return 0;
  if (OSSL_PROVIDER_add_builtin(library->context, "retake", provider_init)) {
    library->randomness = OSSL_PROVIDER_load(library->context, "retake");
    library->algorithms = OSSL_PROVIDER_load(library->context, "default");
  }
  if (library->randomness == NULL || library->algorithms == NULL
      || !RAND_set_DRBG_type(library->context, "RETAKE-RAND", "provider=retake", NULL, NULL)) {
    csupport_library_close(library);
    return 0;
  }
  provider_state *state = OSSL_PROVIDER_get0_provider_ctx(library->randomness);
  state->draw = draw;
  state->user = user;
  return 1;
}

void csupport_library_close(csupport_library *library) {
  // A context that is freed with its providers loaded leaks them.
  if (library->algorithms != NULL) OSSL_PROVIDER_unload(library->algorithms);
  if (library->randomness != NULL) OSSL_PROVIDER_unload(library->randomness);
  OSSL_LIB_CTX_free(library->context);
  memset(library, 0, sizeof *library);
}

int csupport_library_error(char *text, size_t size) {
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
