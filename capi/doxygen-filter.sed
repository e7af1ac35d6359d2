# Shows the headers' plain comments to Doxygen: `/* text` that opens a line documents what follows (the
# first one the file), `/* text */` after a member or a macro documents that one, and the contract's
# parts become paragraphs. noria.h's first comment is the first page.
1s|^/\*  *noria\.h: *|/** \\mainpage Noria's C API\n * |
1s|^/\*  *\([a-z_/]*\.h\): *|/** \\file noria/\1\n * |
2,$s|^\( *\)/\* |\1/** |
s|\([;,]\) */\* \(.*\) \*/ *$|\1 /**< \2 */|
s|^\(  *[A-Za-z_0-9 =-]*[A-Za-z_0-9]\) */\* \(.*\) \*/ *$|\1 /**< \2 */|
s|^\(#define .*[^ ]\) */\* \(.*\) \*/ *$|\1 /**< \2 */|
s/\(^ \* *\|  \)\(Threads\|Owner\|Callback\|Errors\): */\n * \\par \2\n * /g
s|<\([a-z/]*\.h\)>|\&lt;\1\&gt;|g
s|^#include &lt;\(.*\)&gt;|#include <\1>|
/^ *\/*\*/s|#include|\\#include|g
