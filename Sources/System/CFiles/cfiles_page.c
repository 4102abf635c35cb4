#include "cfiles.h"

// Clang knows #embed of C23 in every version of C.
#pragma clang diagnostic ignored "-Wc23-extensions"

static const unsigned char html[] = {
#embed "../Page/Document/page.html" suffix(, 0)
};

static const unsigned char css[] = {
#embed "../Page/Document/page.css" suffix(, 0)
};

// What a module imports stands before it.
static const unsigned char script[] = {
#embed "../Page/Document/basics.js"
    , '\n',
#embed "../Page/Document/server.js"
    , '\n',
#embed "../Page/Document/pieces.js"
    , '\n',
#embed "../Page/Document/columns.js"
    , '\n',
#embed "../Page/Document/take.js"
    , '\n',
#embed "../Page/Document/clock.js"
    , '\n',
#embed "../Page/Document/measures.js"
    , '\n',
#embed "../Page/Document/draw.js"
    , '\n',
#embed "../Page/Document/kinds.js"
    , '\n',
#embed "../Page/Document/media.js"
    , '\n',
#embed "../Page/Document/film.js"
    , '\n',
#embed "../Page/Document/machines.js"
    , '\n',
#embed "../Page/Document/lanes.js"
    , '\n',
#embed "../Page/Document/board.js"
    , '\n',
#embed "../Page/Document/copying.js"
    , '\n',
#embed "../Page/Document/cards.js"
    , '\n',
#embed "../Page/Document/findings.js"
    , '\n',
#embed "../Page/Document/aside.js"
    , '\n',
#embed "../Page/Document/signaling.js"
    , '\n',
#embed "../Page/Document/connection.js"
    , '\n',
#embed "../Page/Document/events.js"
    , '\n',
#embed "../Page/Document/dissect.js"
    , '\n',
#embed "../Page/Document/packets.js"
    , '\n',
#embed "../Page/Document/query.js"
    , '\n',
#embed "../Page/Document/stats.js"
    , '\n',
#embed "../Page/Document/comparing.js"
    , '\n',
#embed "../Page/Document/catalogue.js"
    , '\n',
#embed "../Page/Document/keys.js"
    , '\n',
#embed "../Page/Document/printing.js"
    , '\n',
#embed "../Page/Document/main.js"
    , 0};

const char *cfiles_page_html(void) { return (const char *)html; }

const char *cfiles_page_css(void) { return (const char *)css; }

const char *cfiles_page_script(void) { return (const char *)script; }
