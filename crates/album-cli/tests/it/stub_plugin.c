/* A PJRT plugin that computes nothing: the environment variable STUB says how it fails. Arguments are structs of words: their
   size, a list of extensions, then the fields of pjrt_c_api.h. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

typedef struct { const char *message; int code; } Error;

static Error memory = {"RESOURCE_EXHAUSTED: no room for 17 bytes", 8};
static Error nonsense = {"stablehlo.dot_general: what is that?", 3};
static int thing, outputs, runs;
static void *devices[] = {&thing};

static int fails(const char *how) { const char *stub = getenv("STUB"); return stub && !strcmp(stub, how); }

static void *nothing(size_t *a) { (void)a; return 0; }
static void *message(size_t *a) {
    a[3] = (size_t)((Error *)a[2])->message;
    a[4] = strlen((char *)a[3]);
    return 0;
}
static void *code(size_t *a) { *(int *)&a[3] = ((Error *)a[2])->code; return 0; }
static void *create(size_t *a) { a[8] = (size_t)&thing; return 0; }
static void *name(size_t *a) { a[3] = (size_t)"stub"; a[4] = 4; return 0; }
static void *list(size_t *a) { a[3] = (size_t)devices; a[4] = !fails("no devices"); return 0; }
static void *id(size_t *a) { *(int *)&a[3] = 0; return 0; }
static void *other(size_t *a) { a[3] = (size_t)&thing; return 0; }
static void *count(size_t *a) { a[3] = outputs; return 0; }
static void *compile(size_t *a) {
    size_t *program = (size_t *)a[3];
    if (fails("compile")) return &nonsense;
    outputs = 1; /* the report, and what is updated in place */
    for (const char *at = (char *)program[2]; (at = strstr(at, "tf.aliasing_output")); at++) outputs++;
    a[6] = (size_t)&thing;
    return 0;
}
static void *upload(size_t *a) {
    if (fails("upload")) return &memory;
    a[13] = 0;
    a[14] = (size_t)&thing;
    return 0;
}
static void *statistics(size_t *a) {
    if (!fails("small")) return &nonsense;
    a[3] = 0;
    a[10] = 1000; /* the limit */
    *(char *)&a[11] = 1;
    return 0;
}
static void *execute(size_t *a) {
    if (fails("after 25") && ++runs > 25) return &memory;
    if (fails("crash")) abort();
    for (int i = 0; i < outputs; i++) (*(void ***)a[7])[i] = &thing;
    return 0;
}
static void *download(size_t *a) { memset((void *)a[4], 0, a[5]); a[6] = 0; return 0; }

static struct {
    size_t size; void *extensions; size_t version_size; void *more; int major, minor;
    void *(*calls[100])(size_t *);
} api = {sizeof api, 0, 24, 0, 0, 81,
         {[0] = nothing, [1] = message, [2] = code, [3] = nothing, [5] = nothing, [8] = nothing, [10] = create, [11] = nothing,
          [12] = name, [14] = name, [16] = list, [20] = compile, [22] = upload, [23] = id, [26] = name, [29] = other,
          [34] = statistics, [40] = nothing, [44] = count, [50] = nothing, [51] = other, [55] = execute, [58] = nothing,
          [70] = download}};

void *GetPjrtApi(void) { return &api; }
