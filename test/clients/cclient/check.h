/* What the checks of the C client share. A check is a function that ends at the
 * first thing that is not as it should be, by EXPECT. */
#ifndef CHECK_H
#define CHECK_H

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zookeeper.h>

/* A wait longer than this many seconds has failed. */
#define LIMIT_SECONDS 30

extern char failure[512];

/* Ends the check when a and b differ. */
#define EXPECT(a, b)                                                              \
    do {                                                                          \
        long have_ = (long)(a), want_ = (long)(b);                                \
        if (have_ != want_) {                                                     \
            snprintf(failure, sizeof failure, "%s:%d: %s is %ld, not %s (%ld)",   \
                     __FILE__, __LINE__, #a, have_, #b, want_);                   \
            return -1;                                                            \
        }                                                                         \
    } while (0)

#define EXPECT_TEXT(a, b)                                                         \
    do {                                                                          \
        const char *have_ = (a), *want_ = (b);                                    \
        if (have_ == NULL || strcmp(have_, want_) != 0) {                         \
            snprintf(failure, sizeof failure, "%s:%d: %s is \"%s\", not \"%s\"",  \
                     __FILE__, __LINE__, #a, have_ ? have_ : "(null)", want_);    \
            return -1;                                                            \
        }                                                                         \
    } while (0)

/* A place where completions and watchers leave what they were given. */
struct slot {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    int count; /* completions or events so far */
    int rc, type, state;
    char path[256], text[256];
    int length;
    struct Stat stat;
    int children;
};

void slot_init(struct slot *s);
/* Waits until the slot has count entries; -1 when they do not come. */
int slot_wait(struct slot *s, int count);

void on_event(zhandle_t *zh, int type, int state, const char *path, void *ctx);
void on_void(int rc, const void *data);
void on_stat(int rc, const struct Stat *stat, const void *data);
void on_data(int rc, const char *value, int length, const struct Stat *stat, const void *data);
void on_string(int rc, const char *value, const void *data);
void on_string_stat(int rc, const char *value, const struct Stat *stat, const void *data);
void on_strings(int rc, const struct String_vector *strings, const void *data);
void on_strings_stat(int rc, const struct String_vector *strings, const struct Stat *stat, const void *data);
void on_acl(int rc, struct ACL_vector *acl, struct Stat *stat, const void *data);

/* Opens a session at the server under test, or NULL. */
zhandle_t *open_session(struct slot *events, const clientid_t *id);
extern const char *address;

typedef int (*check_fn)(zhandle_t *zh);
struct check {
    const char *name;
    check_fn run;
};
extern const struct check sync_checks[], async_checks[];

#endif
