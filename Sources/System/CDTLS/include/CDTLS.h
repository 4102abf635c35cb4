/// What DTLS needs beyond OpenSSL's functions: Retake's own randomness, clock and certificates.
#ifndef CDTLS_H
#define CDTLS_H

#include "cdtls_association.h"
#include "cdtls_clock.h"
#include "cdtls_cpu.h"
#include "cdtls_library.h"

#endif
