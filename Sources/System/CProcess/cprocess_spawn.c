#define _GNU_SOURCE
#include "cprocess_spawn.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <unistd.h>

int cprocess_spawn(
  const char *program, char *const arguments[], char *const environment[], const int streams[3]) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  for (int number = 0; number < 3; number += 1) {
    if (streams[number] < 0)
      posix_spawn_file_actions_addopen(&actions, number, "/dev/null", O_RDWR, 0);
    else
      // Needed even if both numbers are equal: it keeps the descriptor open in the child.
      posix_spawn_file_actions_adddup2(&actions, streams[number], number);
  }
  posix_spawn_file_actions_addclosefrom_np(&actions, 3);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t signals;
  sigemptyset(&signals);
  posix_spawnattr_setsigmask(&attributes, &signals);
  sigfillset(&signals);
  posix_spawnattr_setsigdefault(&attributes, &signals);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(
    &attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  pid_t process = 0;
  int code = posix_spawn(
    &process, program, &actions, &attributes, arguments, environment ? environment : environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  return code ? -code : process;
}
