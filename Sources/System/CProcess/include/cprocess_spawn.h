/// Starting child processes.
#ifndef CPROCESS_SPAWN_H
#define CPROCESS_SPAWN_H

/// Starts a program by its path.
///
/// Its standard streams are these three descriptors, where -1 stands for /dev/null. It has no other
/// descriptors, no blocked or ignored signals, and its own process group. If `environment` is NULL,
/// it inherits this process's environment.
///
/// Returns its process number, or a negative errno value.
int cprocess_spawn(
  const char *program, char *const arguments[], char *const environment[], const int streams[3]);

#endif
