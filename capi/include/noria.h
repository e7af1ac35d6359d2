/* The umbrella under its short name: `#include <noria.h>`. */
#include "noria/noria.h"
