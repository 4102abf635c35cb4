/// Fixed-arity forms of SQLite's variadic settings.
#ifndef CSQLITE_SHIM_H
#define CSQLITE_SHIM_H

#include <sqlite3.h>

/// Turns SQLITE_CONFIG_MEMSTATUS off for the process; returns SQLITE_OK, or SQLITE_MISUSE if SQLite
/// is already in use.
static inline int csqlite_count_no_memory(void) {
  return sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
}

/// Turns SQLITE_CONFIG_MEMSTATUS on for the process, as memory limits require; returns SQLITE_OK,
/// or SQLITE_MISUSE if SQLite is already in use.
static inline int csqlite_count_memory(void) { return sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 1); }

/// A virtual table or its cursor in the form that SQLite requires, with the object that implements
/// it.
typedef struct csqlite_table {
  sqlite3_vtab base;
  void *owner;
} csqlite_table;

typedef struct csqlite_cursor {
  sqlite3_vtab_cursor base;
  sqlite3_int64 place;
  sqlite3_int64 count;
  void *owner;
} csqlite_cursor;

/// A module in the form that SQLite requires, with the object that implements it.
typedef struct csqlite_module {
  sqlite3_module base;
  void *owner;
  void (*release)(void *);
} csqlite_module;

static inline void csqlite_release_module(void *context) {
  csqlite_module *module = (csqlite_module *)context;
  module->release(module->owner);
  sqlite3_free(module);
}

/// Registers a module of virtual tables; `release` is called with `owner` even on failure.
static inline int csqlite_create_module(sqlite3 *db, const char *name, sqlite3_module base,
                                        void *owner, void (*release)(void *)) {
  csqlite_module *module = (csqlite_module *)sqlite3_malloc64(sizeof(csqlite_module));
  if (!module) {
    release(owner);
    return SQLITE_NOMEM;
  }
  module->base = base;
  module->owner = owner;
  module->release = release;
  return sqlite3_create_module_v2(db, name, &module->base, module, csqlite_release_module);
}

/// Allows a virtual table in the views of any file; this is safe, because the table reads only the
/// take.
static inline int csqlite_allow_in_views(sqlite3 *db) {
  return sqlite3_vtab_config(db, SQLITE_VTAB_INNOCUOUS);
}

/// Sets the result to a string, which SQLite copies.
static inline void csqlite_result_text(sqlite3_context *context, const char *text, int count) {
  sqlite3_result_text(context, text, count, SQLITE_TRANSIENT);
}

/// Copies a string into memory that SQLite frees.
static inline char *csqlite_copy(const char *text) { return sqlite3_mprintf("%s", text); }

#endif
