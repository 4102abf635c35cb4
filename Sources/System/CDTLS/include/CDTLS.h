/// What DTLS needs of OpenSSL beyond its functions: randomness, a clock and certificates of ours.
#ifndef CDTLS_H
#define CDTLS_H

#include "cdtls_association.h"
#include "cdtls_clock.h"
#include "cdtls_cpu.h"
#include "cdtls_library.h"

#endif
