#include "cfiles.h"

#include <stddef.h>

// Clang supports C23's #embed in every version of C, so the warning is unnecessary.
#pragma clang diagnostic ignored "-Wc23-extensions"

static const unsigned char html[] = {
#embed "../../Take/Page/Document/page.html" suffix(, 0)
};

static const unsigned char css[] = {
#embed "../../Take/Page/Document/page.css" suffix(, 0)
};

static const unsigned char board_board[] = {
#embed "../../Take/Page/Document/board/board.js" suffix(, 0)
};
static const unsigned char board_pointer[] = {
#embed "../../Take/Page/Document/board/pointer.js" suffix(, 0)
};
static const unsigned char board_redraw[] = {
#embed "../../Take/Page/Document/board/redraw.js" suffix(, 0)
};
static const unsigned char board_state[] = {
#embed "../../Take/Page/Document/board/state.js" suffix(, 0)
};
static const unsigned char board_strip[] = {
#embed "../../Take/Page/Document/board/strip.js" suffix(, 0)
};
static const unsigned char board_tools[] = {
#embed "../../Take/Page/Document/board/tools.js" suffix(, 0)
};
static const unsigned char catalogue_catalogue[] = {
#embed "../../Take/Page/Document/catalogue/catalogue.js" suffix(, 0)
};
static const unsigned char catalogue_facets[] = {
#embed "../../Take/Page/Document/catalogue/facets.js" suffix(, 0)
};
static const unsigned char catalogue_narrowing[] = {
#embed "../../Take/Page/Document/catalogue/narrowing.js" suffix(, 0)
};
static const unsigned char catalogue_sparkline[] = {
#embed "../../Take/Page/Document/catalogue/sparkline.js" suffix(, 0)
};
static const unsigned char clock_address[] = {
#embed "../../Take/Page/Document/clock/address.js" suffix(, 0)
};
static const unsigned char clock_clock[] = {
#embed "../../Take/Page/Document/clock/clock.js" suffix(, 0)
};
static const unsigned char clock_times[] = {
#embed "../../Take/Page/Document/clock/times.js" suffix(, 0)
};
static const unsigned char lanes_audio[] = {
#embed "../../Take/Page/Document/lanes/audio.js" suffix(, 0)
};
static const unsigned char lanes_channels[] = {
#embed "../../Take/Page/Document/lanes/channels.js" suffix(, 0)
};
static const unsigned char lanes_connection[] = {
#embed "../../Take/Page/Document/lanes/connection.js" suffix(, 0)
};
static const unsigned char lanes_coverage[] = {
#embed "../../Take/Page/Document/lanes/coverage.js" suffix(, 0)
};
static const unsigned char lanes_curves[] = {
#embed "../../Take/Page/Document/lanes/curves.js" suffix(, 0)
};
static const unsigned char lanes_devices[] = {
#embed "../../Take/Page/Document/lanes/devices.js" suffix(, 0)
};
static const unsigned char lanes_draw[] = {
#embed "../../Take/Page/Document/lanes/draw.js" suffix(, 0)
};
static const unsigned char lanes_film[] = {
#embed "../../Take/Page/Document/lanes/film.js" suffix(, 0)
};
static const unsigned char lanes_flows[] = {
#embed "../../Take/Page/Document/lanes/flows.js" suffix(, 0)
};
static const unsigned char lanes_groups[] = {
#embed "../../Take/Page/Document/lanes/groups.js" suffix(, 0)
};
static const unsigned char lanes_kinds[] = {
#embed "../../Take/Page/Document/lanes/kinds.js" suffix(, 0)
};
static const unsigned char lanes_mediakinds[] = {
#embed "../../Take/Page/Document/lanes/mediakinds.js" suffix(, 0)
};
static const unsigned char lanes_messages[] = {
#embed "../../Take/Page/Document/lanes/messages.js" suffix(, 0)
};
static const unsigned char lanes_rooms[] = {
#embed "../../Take/Page/Document/lanes/rooms.js" suffix(, 0)
};
static const unsigned char lanes_speakers[] = {
#embed "../../Take/Page/Document/lanes/speakers.js" suffix(, 0)
};
static const unsigned char lanes_states[] = {
#embed "../../Take/Page/Document/lanes/states.js" suffix(, 0)
};
static const unsigned char lanes_video[] = {
#embed "../../Take/Page/Document/lanes/video.js" suffix(, 0)
};
static const unsigned char measures_delays[] = {
#embed "../../Take/Page/Document/measures/delays.js" suffix(, 0)
};
static const unsigned char measures_frames[] = {
#embed "../../Take/Page/Document/measures/frames.js" suffix(, 0)
};
static const unsigned char measures_peaks[] = {
#embed "../../Take/Page/Document/measures/peaks.js" suffix(, 0)
};
static const unsigned char measures_rates[] = {
#embed "../../Take/Page/Document/measures/rates.js" suffix(, 0)
};
static const unsigned char shared_elements[] = {
#embed "../../Take/Page/Document/shared/elements.js" suffix(, 0)
};
static const unsigned char shared_pieces[] = {
#embed "../../Take/Page/Document/shared/pieces.js" suffix(, 0)
};
static const unsigned char shared_scroller[] = {
#embed "../../Take/Page/Document/shared/scroller.js" suffix(, 0)
};
static const unsigned char shared_search[] = {
#embed "../../Take/Page/Document/shared/search.js" suffix(, 0)
};
static const unsigned char shared_server[] = {
#embed "../../Take/Page/Document/shared/server.js" suffix(, 0)
};
static const unsigned char shared_words[] = {
#embed "../../Take/Page/Document/shared/words.js" suffix(, 0)
};
static const unsigned char sql_examples[] = {
#embed "../../Take/Page/Document/sql/examples.js" suffix(, 0)
};
static const unsigned char sql_history[] = {
#embed "../../Take/Page/Document/sql/history.js" suffix(, 0)
};
static const unsigned char sql_ownlane[] = {
#embed "../../Take/Page/Document/sql/ownlane.js" suffix(, 0)
};
static const unsigned char sql_query[] = {
#embed "../../Take/Page/Document/sql/query.js" suffix(, 0)
};
static const unsigned char sql_schema[] = {
#embed "../../Take/Page/Document/sql/schema.js" suffix(, 0)
};
static const unsigned char take_columns[] = {
#embed "../../Take/Page/Document/take/columns.js" suffix(, 0)
};
static const unsigned char take_flows[] = {
#embed "../../Take/Page/Document/take/flows.js" suffix(, 0)
};
static const unsigned char take_people[] = {
#embed "../../Take/Page/Document/take/people.js" suffix(, 0)
};
static const unsigned char take_reading[] = {
#embed "../../Take/Page/Document/take/reading.js" suffix(, 0)
};
static const unsigned char take_series[] = {
#embed "../../Take/Page/Document/take/series.js" suffix(, 0)
};
static const unsigned char take_take[] = {
#embed "../../Take/Page/Document/take/take.js" suffix(, 0)
};
static const unsigned char views_aside[] = {
#embed "../../Take/Page/Document/views/aside.js" suffix(, 0)
};
static const unsigned char views_cards[] = {
#embed "../../Take/Page/Document/views/cards.js" suffix(, 0)
};
static const unsigned char views_comparing[] = {
#embed "../../Take/Page/Document/views/comparing.js" suffix(, 0)
};
static const unsigned char views_connection[] = {
#embed "../../Take/Page/Document/views/connection.js" suffix(, 0)
};
static const unsigned char views_copying[] = {
#embed "../../Take/Page/Document/views/copying.js" suffix(, 0)
};
static const unsigned char views_descriptions[] = {
#embed "../../Take/Page/Document/views/descriptions.js" suffix(, 0)
};
static const unsigned char views_events[] = {
#embed "../../Take/Page/Document/views/events.js" suffix(, 0)
};
static const unsigned char views_findings[] = {
#embed "../../Take/Page/Document/views/findings.js" suffix(, 0)
};
static const unsigned char views_keys[] = {
#embed "../../Take/Page/Document/views/keys.js" suffix(, 0)
};
static const unsigned char views_media[] = {
#embed "../../Take/Page/Document/views/media.js" suffix(, 0)
};
static const unsigned char views_packets[] = {
#embed "../../Take/Page/Document/views/packets.js" suffix(, 0)
};
static const unsigned char views_printing[] = {
#embed "../../Take/Page/Document/views/printing.js" suffix(, 0)
};
static const unsigned char views_signaling[] = {
#embed "../../Take/Page/Document/views/signaling.js" suffix(, 0)
};
static const unsigned char views_stats[] = {
#embed "../../Take/Page/Document/views/stats.js" suffix(, 0)
};
static const unsigned char main[] = {
#embed "../../Take/Page/Document/main.js" suffix(, 0)
};

// The order is irrelevant: modules are linked in the order of their imports.
static const struct {
  const char *name;
  const unsigned char *text;
} modules[] = {
    {"board/board.js", board_board},
    {"board/pointer.js", board_pointer},
    {"board/redraw.js", board_redraw},
    {"board/state.js", board_state},
    {"board/strip.js", board_strip},
    {"board/tools.js", board_tools},
    {"catalogue/catalogue.js", catalogue_catalogue},
    {"catalogue/facets.js", catalogue_facets},
    {"catalogue/narrowing.js", catalogue_narrowing},
    {"catalogue/sparkline.js", catalogue_sparkline},
    {"clock/address.js", clock_address},
    {"clock/clock.js", clock_clock},
    {"clock/times.js", clock_times},
    {"lanes/audio.js", lanes_audio},
    {"lanes/channels.js", lanes_channels},
    {"lanes/connection.js", lanes_connection},
    {"lanes/coverage.js", lanes_coverage},
    {"lanes/curves.js", lanes_curves},
    {"lanes/devices.js", lanes_devices},
    {"lanes/draw.js", lanes_draw},
    {"lanes/film.js", lanes_film},
    {"lanes/flows.js", lanes_flows},
    {"lanes/groups.js", lanes_groups},
    {"lanes/kinds.js", lanes_kinds},
    {"lanes/mediakinds.js", lanes_mediakinds},
    {"lanes/messages.js", lanes_messages},
    {"lanes/rooms.js", lanes_rooms},
    {"lanes/speakers.js", lanes_speakers},
    {"lanes/states.js", lanes_states},
    {"lanes/video.js", lanes_video},
    {"measures/delays.js", measures_delays},
    {"measures/frames.js", measures_frames},
    {"measures/peaks.js", measures_peaks},
    {"measures/rates.js", measures_rates},
    {"shared/elements.js", shared_elements},
    {"shared/pieces.js", shared_pieces},
    {"shared/scroller.js", shared_scroller},
    {"shared/search.js", shared_search},
    {"shared/server.js", shared_server},
    {"shared/words.js", shared_words},
    {"sql/examples.js", sql_examples},
    {"sql/history.js", sql_history},
    {"sql/ownlane.js", sql_ownlane},
    {"sql/query.js", sql_query},
    {"sql/schema.js", sql_schema},
    {"take/columns.js", take_columns},
    {"take/flows.js", take_flows},
    {"take/people.js", take_people},
    {"take/reading.js", take_reading},
    {"take/series.js", take_series},
    {"take/take.js", take_take},
    {"views/aside.js", views_aside},
    {"views/cards.js", views_cards},
    {"views/comparing.js", views_comparing},
    {"views/connection.js", views_connection},
    {"views/copying.js", views_copying},
    {"views/descriptions.js", views_descriptions},
    {"views/events.js", views_events},
    {"views/findings.js", views_findings},
    {"views/keys.js", views_keys},
    {"views/media.js", views_media},
    {"views/packets.js", views_packets},
    {"views/printing.js", views_printing},
    {"views/signaling.js", views_signaling},
    {"views/stats.js", views_stats},
    {"main.js", main},
};

const char *cfiles_page_html(void) { return (const char *)html; }

const char *cfiles_page_css(void) { return (const char *)css; }

const char *cfiles_page_module_name(unsigned int index) {
  return index < sizeof modules / sizeof *modules ? modules[index].name : NULL;
}

const char *cfiles_page_module(unsigned int index) {
  return index < sizeof modules / sizeof *modules ? (const char *)modules[index].text : NULL;
}
