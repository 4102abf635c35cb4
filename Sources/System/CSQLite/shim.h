/// Fixed-arity forms of SQLite's variadic settings.
#ifndef CSQLITE_SHIM_H
#define CSQLITE_SHIM_H

#include <sqlite3.h>

/// SQLITE_CONFIG_MEMSTATUS off for the process; SQLITE_OK, or SQLITE_MISUSE when SQLite is in use.
static inline int csqlite_count_no_memory(void) {
  return sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
}

/// SQLITE_CONFIG_MEMSTATUS on for the process, which limits of memory need; a code as above.
static inline int csqlite_count_memory(void) { return sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 1); }

#endif
