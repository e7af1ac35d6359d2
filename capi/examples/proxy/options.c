/* options.c: the command line of noria-proxy. */
#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <noria/noria.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define SECOND_NS UINT64_C(1000000000)

/* Descriptors of one connection: two sockets and a pipe for each direction. */
#define DESCRIPTORS_EACH 6u

static const char usage[] =
    "noria-proxy: a TCP proxy on the Noria runtime\n"
    "\n"
    "  noria-proxy --listen HOST:PORT --upstream HOST:PORT[,HOST:PORT...]\n"
    "  noria-proxy --demo\n"
    "\n"
    "  --listen HOST:PORT        where to accept connections (port 0: any free one)\n"
    "  --upstream LIST           where to pass them on, in turn; one that fails is passed over\n"
    "  --max-connections N       at most N at a time, the rest wait in the backlog\n"
    "                            (default: what the descriptor limit allows, at most 100,000)\n"
    "  --connect-timeout D       give up on an upstream after D (default 5s)\n"
    "  --idle-timeout D          end a connection on which nothing moved for D (default 5m)\n"
    "  --drain-timeout D         after SIGINT or SIGTERM, wait so long for connections to end\n"
    "                            (default 30s; a second signal ends the waiting)\n"
    "  --workers N               worker threads (default: one for each CPU)\n"
    "  --json                    print one JSON object at the end\n"
    "  --quiet                   no status, no log of failed connections\n"
    "  --demo[=SECONDS]          show it: an echo server and 200 clients in this process, every\n"
    "                            byte checked (default 10)\n"
    "  --help, --version\n"
    "\n"
    "  D is a number with ms, s, m or h (a plain number: seconds); 0 means never,\n"
    "  and for the demo it is not allowed.\n";

static enum options_outcome wrong(const char *option, const char *value, const char *expected) {
  fprintf(stderr, "noria-proxy: --%s: \"%s\" is not %s\n", option, value, expected);
  return OPTIONS_WRONG;
}

static bool parse_number(const char *text, uint64_t least, uint64_t most, uint64_t *out) {
  char *end = NULL;
  errno = 0;
  unsigned long long number = strtoull(text, &end, 10);
  if (errno != 0 || end == text || *end != '\0' || *text < '0' || *text > '9') return false;
  if (number < least || number > most) return false;
  *out = number;
  return true;
}

static bool parse_duration(const char *text, uint64_t *out_ns) {
  char *end = NULL;
  errno = 0;
  double number = strtod(text, &end);
  if (errno != 0 || end == text || !(number >= 0)) return false;
  double unit = -1;
  if (*end == '\0' || strcmp(end, "s") == 0) unit = 1e9;
  if (strcmp(end, "us") == 0) unit = 1e3;
  if (strcmp(end, "ms") == 0) unit = 1e6;
  if (strcmp(end, "m") == 0) unit = 60e9;
  if (strcmp(end, "h") == 0) unit = 3600e9;
  if (unit < 0 || number * unit > 1e18) return false;
  *out_ns = (uint64_t)(number * unit);
  return true;
}

static bool is_address(const char *text, uint64_t least_port) {
  const char *colon = strrchr(text, ':');
  uint64_t port = 0;
  return colon != NULL && colon != text && parse_number(colon + 1, least_port, UINT16_MAX, &port);
}

/* Cuts the list at its commas, in place. */
static enum options_outcome take_upstreams(const char *name, char *list, Options *out) {
  char *rest = NULL;
  for (char *one = strtok_r(list, ",", &rest); one != NULL; one = strtok_r(NULL, ",", &rest)) {
    if (!is_address(one, 1)) return wrong(name, one, "HOST:PORT with a port from 1 to 65535");
    if (out->upstream_count == UPSTREAMS_MAX) {
      fprintf(stderr, "noria-proxy: --%s: %d addresses at most\n", name, UPSTREAMS_MAX);
      return OPTIONS_WRONG;
    }
    out->upstreams[out->upstream_count++] = one;
  }
  return out->upstream_count > 0 ? OPTIONS_RUN : wrong(name, list, "a list of HOST:PORT");
}

/* Raises the descriptor limit as far as it goes and tells how many connections it allows. */
static uint64_t connections_allowed(void) {
  struct rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 1000;
  limit.rlim_cur = limit.rlim_max;
  if (setrlimit(RLIMIT_NOFILE, &limit) != 0 && getrlimit(RLIMIT_NOFILE, &limit) != 0) return 1000;
  uint64_t descriptors = limit.rlim_cur;
  uint64_t connections = descriptors > 64 ? (descriptors - 64) / DESCRIPTORS_EACH : 1;
  return connections > 100000 ? 100000 : connections;
}

static enum options_outcome check(const Options *options) {
  if (options->demo) return OPTIONS_RUN;
  if (options->listen != NULL && options->upstream_count > 0) return OPTIONS_RUN;
  fprintf(stderr, "noria-proxy: %s is missing (or try --demo; --help tells all)\n",
          options->listen == NULL ? "--listen" : "--upstream");
  return OPTIONS_WRONG;
}

static enum options_outcome take(int option, const char *name, char *value, Options *out) {
  uint64_t number = 0;
  switch (option) {
    case 'l':
      if (!is_address(value, 0)) return wrong(name, value, "HOST:PORT with a port from 0 to 65535");
      out->listen = value;
      return OPTIONS_RUN;
    case 'u':
      return take_upstreams(name, value, out);
    case 'm':
      if (parse_number(value, 1, 10000000, &out->max_connections)) return OPTIONS_RUN;
      return wrong(name, value, "a number from 1 to 10000000");
    case 'w':
      if (!parse_number(value, 1, 1024, &number)) {
        return wrong(name, value, "a number from 1 to 1024");
      }
      out->workers = (uint32_t)number;
      return OPTIONS_RUN;
    case 'c':
      return parse_duration(value, &out->connect_timeout_ns) ? OPTIONS_RUN : wrong(name, value, "a duration");
    case 'i':
      return parse_duration(value, &out->idle_timeout_ns) ? OPTIONS_RUN : wrong(name, value, "a duration");
    case 'd':
      return parse_duration(value, &out->drain_timeout_ns) ? OPTIONS_RUN : wrong(name, value, "a duration");
    case 'j':
      out->json = true;
      return OPTIONS_RUN;
    case 'q':
      out->quiet = true;
      return OPTIONS_RUN;
    case 'D':
      out->demo = true;
      if (value == NULL || (parse_duration(value, &out->demo_ns) && out->demo_ns > 0)) {
        return OPTIONS_RUN;
      }
      return wrong(name, value, "a duration above zero");
    case 'h':
      fputs(usage, stdout);
      return OPTIONS_DONE;
    case 'V': {
      int32_t version = noria_version();
      printf("noria-proxy %d.%d.%d\n", version / 1000000, version / 1000 % 1000, version % 1000);
      return OPTIONS_DONE;
    }
    default:
      return OPTIONS_WRONG; /* getopt_long told what is wrong */
  }
}

enum options_outcome options_parse(int argc, char **argv, Options *out) {
  static const struct option known[] = {
      {"listen", required_argument, NULL, 'l'},
      {"upstream", required_argument, NULL, 'u'},
      {"max-connections", required_argument, NULL, 'm'},
      {"connect-timeout", required_argument, NULL, 'c'},
      {"idle-timeout", required_argument, NULL, 'i'},
      {"drain-timeout", required_argument, NULL, 'd'},
      {"workers", required_argument, NULL, 'w'},
      {"json", no_argument, NULL, 'j'},
      {"quiet", no_argument, NULL, 'q'},
      {"demo", optional_argument, NULL, 'D'},
      {"help", no_argument, NULL, 'h'},
      {"version", no_argument, NULL, 'V'},
      {NULL, 0, NULL, 0},
  };
  *out = (Options){
      .max_connections = connections_allowed(),
      .connect_timeout_ns = 5 * SECOND_NS,
      .idle_timeout_ns = 300 * SECOND_NS,
      .drain_timeout_ns = 30 * SECOND_NS,
      .demo_ns = 10 * SECOND_NS,
  };
  static char program[] = "noria-proxy"; /* getopt begins its messages with it */
  if (argc > 0) argv[0] = program;
  for (;;) {
    int index = 0;
    int option = getopt_long(argc, argv, "", known, &index);
    if (option == -1) break;
    enum options_outcome outcome = take(option, known[index].name, optarg, out);
    if (outcome != OPTIONS_RUN) return outcome;
  }
  if (optind < argc) {
    fprintf(stderr, "noria-proxy: \"%s\" is no option%s\n", argv[optind],
            out->demo ? " (the demo's time is written --demo=SECONDS)" : "");
    return OPTIONS_WRONG;
  }
  return check(out);
}
