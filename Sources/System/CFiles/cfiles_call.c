#include "cfiles.h"

// Clang supports C23's #embed in every version of C, so the warning is unnecessary.
#pragma clang diagnostic ignored "-Wc23-extensions"

static const unsigned char html[] = {
#embed "../../Live/Signaling/CallPage/call.html" suffix(, 0)
};

static const unsigned char css[] = {
#embed "../../Live/Signaling/CallPage/call.css" suffix(, 0)
};

static const unsigned char script[] = {
#embed "../../Live/Signaling/CallPage/call.js" suffix(, 0)
};

const char *cfiles_call_html(void) { return (const char *)html; }

const char *cfiles_call_css(void) { return (const char *)css; }

const char *cfiles_call_script(void) { return (const char *)script; }
