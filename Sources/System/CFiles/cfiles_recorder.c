#include "cfiles.h"

#include <stddef.h>

// Clang supports C23's #embed in every version of C, so the warning is unnecessary.
#pragma clang diagnostic ignored "-Wc23-extensions"

static const unsigned char manifest[] = {
#embed "../../Live/PageRecording/Extension/manifest.json" suffix(, 0)
};

static const unsigned char relay[] = {
#embed "../../Live/PageRecording/Extension/relay.js" suffix(, 0)
};

static const unsigned char script_calls[] = {
#embed "../../Live/PageRecording/Script/calls.js" suffix(, 0)
};
static const unsigned char script_connections[] = {
#embed "../../Live/PageRecording/Script/connections.js" suffix(, 0)
};
static const unsigned char script_cost[] = {
#embed "../../Live/PageRecording/Script/cost.js" suffix(, 0)
};
static const unsigned char script_deltas[] = {
#embed "../../Live/PageRecording/Script/deltas.js" suffix(, 0)
};
static const unsigned char script_frames[] = {
#embed "../../Live/PageRecording/Script/frames.js" suffix(, 0)
};
static const unsigned char script_link[] = {
#embed "../../Live/PageRecording/Script/link.js" suffix(, 0)
};
static const unsigned char script_main[] = {
#embed "../../Live/PageRecording/Script/main.js" suffix(, 0)
};
static const unsigned char script_natives[] = {
#embed "../../Live/PageRecording/Script/natives.js" suffix(, 0)
};
static const unsigned char script_relayed[] = {
#embed "../../Live/PageRecording/Script/relayed.js" suffix(, 0)
};
static const unsigned char script_sampling[] = {
#embed "../../Live/PageRecording/Script/sampling.js" suffix(, 0)
};
static const unsigned char script_values[] = {
#embed "../../Live/PageRecording/Script/values.js" suffix(, 0)
};

static const struct {
  const char *name;
  const unsigned char *text;
} modules[] = {
    {"calls.js", script_calls},
    {"connections.js", script_connections},
    {"cost.js", script_cost},
    {"deltas.js", script_deltas},
    {"frames.js", script_frames},
    {"link.js", script_link},
    {"main.js", script_main},
    {"natives.js", script_natives},
    {"relayed.js", script_relayed},
    {"sampling.js", script_sampling},
    {"values.js", script_values},
};

const char *cfiles_recorder_manifest(void) { return (const char *)manifest; }

const char *cfiles_recorder_relay(void) { return (const char *)relay; }

const char *cfiles_recorder_module_name(unsigned int index) {
  return index < sizeof modules / sizeof *modules ? modules[index].name : NULL;
}

const char *cfiles_recorder_module(unsigned int index) {
  return index < sizeof modules / sizeof *modules ? (const char *)modules[index].text : NULL;
}
