#include "cfiles.h"

#include <stddef.h>

// Clang supports C23's #embed in every version of C, so the warning is unnecessary.
#pragma clang diagnostic ignored "-Wc23-extensions"

static const unsigned char take[] = {
#embed "../../../Schema/0001_take.sql" suffix(, 0)
};

static const unsigned char machines[] = {
#embed "../../../Schema/0002_machines.sql" suffix(, 0)
};

static const unsigned char pictures[] = {
#embed "../../../Schema/0003_pictures.sql" suffix(, 0)
};

static const unsigned char rooms[] = {
#embed "../../../Schema/0004_rooms.sql" suffix(, 0)
};

static const unsigned char marks[] = {
#embed "../../../Schema/0005_marks.sql" suffix(, 0)
};

static const unsigned char questions[] = {
#embed "../../../Schema/0006_questions.sql" suffix(, 0)
};

static const unsigned char relays[] = {
#embed "../../../Schema/0007_relays.sql" suffix(, 0)
};

static const unsigned char *const migrations[] = {
    take, machines, pictures, rooms, marks, questions, relays};

const char *cfiles_schema(unsigned int index) {
  if (index >= sizeof migrations / sizeof *migrations) return NULL;
  return (const char *)migrations[index];
}
