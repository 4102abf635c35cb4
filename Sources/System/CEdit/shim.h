#include <histedit.h>
#include <stdio.h>

// Swift cannot call variadic functions, and most of libedit's functions are variadic.

/// The prompt callback of libedit.
typedef char *(*cedit_text)(EditLine *);
/// The action of a key; returns one of the CC_ codes.
typedef unsigned char (*cedit_action)(EditLine *, int);

/// Opens an editor on the standard streams, with Emacs key bindings and the user's ~/.editrc.
static inline EditLine *cedit_open(
    History *lines, void *owner, cedit_text prompt, cedit_action complete, cedit_action cancel) {
  EditLine *editor = el_init("retake", stdin, stdout, stderr);
  if (!editor) return NULL;
  el_set(editor, EL_CLIENTDATA, owner);
  el_set(editor, EL_PROMPT, prompt);
  el_set(editor, EL_EDITOR, "emacs");
  el_set(editor, EL_SIGNAL, 1);
  el_set(editor, EL_HIST, history, lines);
  el_set(editor, EL_ADDFN, "retake-complete", "Complete a word", complete);
  el_set(editor, EL_ADDFN, "retake-cancel", "Leave the line", cancel);
  el_set(editor, EL_BIND, "^I", "retake-complete", NULL);
  el_set(editor, EL_BIND, "^R", "em-inc-search-prev", NULL);
  el_source(editor, NULL);
  // While a line is edited, Ctrl-C is a key rather than a signal, which libedit would send to all
  // processes of the session.
  el_set(editor, EL_SETTY, "-d", "-isig", NULL);
  el_set(editor, EL_BIND, "^C", "retake-cancel", NULL);
  return editor;
}

/// Reads a line; NULL at the end of the input.
///
/// The terminal is configured first, because libedit does so only after printing its prompt: until
/// then, typed text would be shown twice, and Ctrl-C would still raise a signal.
static inline const char *cedit_line(EditLine *editor, int *count) {
  el_set(editor, EL_PREP_TERM, 1);
  return el_gets(editor, count);
}

/// Returns the owner that was passed to `cedit_open`.
static inline void *cedit_owner(EditLine *editor) {
  void *owner = NULL;
  el_get(editor, EL_CLIENTDATA, &owner);
  return owner;
}

/// Prints text to the editor's output.
static inline void cedit_print(EditLine *editor, const char *text) {
  FILE *output = NULL;
  if (el_get(editor, EL_GETFP, 1, &output) == 0 && output) fputs(text, output);
}

/// Clears the line being edited.
static inline void cedit_clear(EditLine *editor) {
  const LineInfoW *line = el_wline(editor);
  int rest = (int)(line->lastchar - line->cursor), all = (int)(line->lastchar - line->buffer);
  el_cursor(editor, rest);
  el_deletestr(editor, all);
}

/// Sets the maximum number of lines in the history, and makes it drop consecutive duplicates;
/// returns a negative value on failure.
static inline int cedit_limit(History *lines, int count) {
  HistEvent event;
  history(lines, &event, H_SETUNIQUE, 1);
  return history(lines, &event, H_SETSIZE, count);
}

/// Adds a line to the history.
static inline int cedit_remember(History *lines, const char *line) {
  HistEvent event;
  return history(lines, &event, H_ENTER, line);
}

/// Reads the history from a file; returns a negative value on failure.
static inline int cedit_load(History *lines, const char *path) {
  HistEvent event;
  return history(lines, &event, H_LOAD, path);
}

/// Writes the history to a file; returns a negative value on failure.
static inline int cedit_save(History *lines, const char *path) {
  HistEvent event;
  return history(lines, &event, H_SAVE, path);
}
