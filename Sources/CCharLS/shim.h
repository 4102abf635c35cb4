#include <charls/charls.h>
