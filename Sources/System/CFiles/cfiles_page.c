#include "cfiles.h"

// Clang knows #embed of C23 in every version of C.
#pragma clang diagnostic ignored "-Wc23-extensions"

static const unsigned char html[] = {
#embed "../../Take/Page/Document/page.html" suffix(, 0)
};

static const unsigned char css[] = {
#embed "../../Take/Page/Document/page.css" suffix(, 0)
};

// What a module imports stands before it.
static const unsigned char script[] = {
#embed "../../Take/Page/Document/basics.js"
    , '\n',
#embed "../../Take/Page/Document/server.js"
    , '\n',
#embed "../../Take/Page/Document/pieces.js"
    , '\n',
#embed "../../Take/Page/Document/columns.js"
    , '\n',
#embed "../../Take/Page/Document/take.js"
    , '\n',
#embed "../../Take/Page/Document/clock.js"
    , '\n',
#embed "../../Take/Page/Document/measures.js"
    , '\n',
#embed "../../Take/Page/Document/draw.js"
    , '\n',
#embed "../../Take/Page/Document/kinds.js"
    , '\n',
#embed "../../Take/Page/Document/media.js"
    , '\n',
#embed "../../Take/Page/Document/film.js"
    , '\n',
#embed "../../Take/Page/Document/machines.js"
    , '\n',
#embed "../../Take/Page/Document/lanes.js"
    , '\n',
#embed "../../Take/Page/Document/board.js"
    , '\n',
#embed "../../Take/Page/Document/copying.js"
    , '\n',
#embed "../../Take/Page/Document/cards.js"
    , '\n',
#embed "../../Take/Page/Document/findings.js"
    , '\n',
#embed "../../Take/Page/Document/aside.js"
    , '\n',
#embed "../../Take/Page/Document/signaling.js"
    , '\n',
#embed "../../Take/Page/Document/connection.js"
    , '\n',
#embed "../../Take/Page/Document/events.js"
    , '\n',
#embed "../../Take/Page/Document/dissect.js"
    , '\n',
#embed "../../Take/Page/Document/packets.js"
    , '\n',
#embed "../../Take/Page/Document/query.js"
    , '\n',
#embed "../../Take/Page/Document/stats.js"
    , '\n',
#embed "../../Take/Page/Document/comparing.js"
    , '\n',
#embed "../../Take/Page/Document/catalogue.js"
    , '\n',
#embed "../../Take/Page/Document/keys.js"
    , '\n',
#embed "../../Take/Page/Document/printing.js"
    , '\n',
#embed "../../Take/Page/Document/main.js"
    , 0};

const char *cfiles_page_html(void) { return (const char *)html; }

const char *cfiles_page_css(void) { return (const char *)css; }

const char *cfiles_page_script(void) { return (const char *)script; }
