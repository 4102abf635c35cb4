/// Files embedded in the binary as strings.
///
/// They are in C, because the Swift compiler would need half a minute to compile the same bytes as
/// array literals.
#ifndef CFILES_H
#define CFILES_H

/// The page of a take: its document, its style, and its script's modules with their paths relative
/// to the document; NULL after the last module.
const char *cfiles_page_html(void);
const char *cfiles_page_css(void);
const char *cfiles_page_module_name(unsigned int index);
const char *cfiles_page_module(unsigned int index);

/// The page with which a browser makes a call.
const char *cfiles_call_html(void);
const char *cfiles_call_css(void);
const char *cfiles_call_script(void);

/// The script that records pages, as modules with NULL after the last one, and the files of the
/// browser extension that injects it.
const char *cfiles_recorder_module_name(unsigned int index);
const char *cfiles_recorder_module(unsigned int index);
const char *cfiles_recorder_manifest(void);
const char *cfiles_recorder_relay(void);

/// Returns a file of the take schema, counted from the oldest; NULL after the last file.
const char *cfiles_schema(unsigned int index);

#endif
