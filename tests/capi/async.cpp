// The same program as C++.
#include "async.c"
