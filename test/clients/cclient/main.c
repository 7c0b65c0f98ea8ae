/* Runs every check of the C client in a session of its own and prints PASS or
 * FAIL with its name. Argument: the server's address. */
#include "check.h"

#include <time.h>

char failure[512];
const char *address;

void slot_init(struct slot *s)
{
    memset(s, 0, sizeof *s);
    pthread_mutex_init(&s->mutex, NULL);
    pthread_cond_init(&s->changed, NULL);
}

int slot_wait(struct slot *s, int count)
{
    struct timespec until;
    int late = 0;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += LIMIT_SECONDS;
    pthread_mutex_lock(&s->mutex);
    while (s->count < count && !late)
        late = pthread_cond_timedwait(&s->changed, &s->mutex, &until) != 0;
    pthread_mutex_unlock(&s->mutex);
    return late ? -1 : 0;
}

static struct slot *begin(const void *data)
{
    struct slot *s = (struct slot *)data;

    pthread_mutex_lock(&s->mutex);
    return s;
}

static void end(struct slot *s)
{
    s->count++;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->mutex);
}

void on_event(zhandle_t *zh, int type, int state, const char *path, void *ctx)
{
    struct slot *s = begin(ctx);

    (void)zh;
    s->type = type;
    s->state = state;
    snprintf(s->path, sizeof s->path, "%s", path ? path : "");
    end(s);
}

void on_void(int rc, const void *data)
{
    struct slot *s = begin(data);

    s->rc = rc;
    end(s);
}

void on_stat(int rc, const struct Stat *stat, const void *data)
{
    struct slot *s = begin(data);

    s->rc = rc;
    if (rc == ZOK)
        s->stat = *stat;
    end(s);
}

void on_data(int rc, const char *value, int length, const struct Stat *stat, const void *data)
{
    struct slot *s = begin(data);

    s->rc = rc;
    if (rc == ZOK) {
        s->length = length;
        s->stat = *stat;
        snprintf(s->text, sizeof s->text, "%.*s", length > 0 ? length : 0, value ? value : "");
    }
    end(s);
}

void on_string(int rc, const char *value, const void *data)
{
    struct slot *s = begin(data);

    s->rc = rc;
    snprintf(s->text, sizeof s->text, "%s", rc == ZOK && value ? value : "");
    end(s);
}

void on_string_stat(int rc, const char *value, const struct Stat *stat, const void *data)
{
    struct slot *s = begin(data);

    s->rc = rc;
    if (rc == ZOK) {
        s->stat = *stat;
        snprintf(s->text, sizeof s->text, "%s", value);
    }
    end(s);
}

void on_strings(int rc, const struct String_vector *strings, const void *data)
{
    struct slot *s = begin(data);

    s->rc = rc;
    s->children = rc == ZOK ? strings->count : -1;
    end(s);
}

void on_strings_stat(int rc, const struct String_vector *strings, const struct Stat *stat, const void *data)
{
    struct slot *s = begin(data);

    s->rc = rc;
    s->children = rc == ZOK ? strings->count : -1;
    if (rc == ZOK)
        s->stat = *stat;
    end(s);
}

void on_acl(int rc, struct ACL_vector *acl, struct Stat *stat, const void *data)
{
    struct slot *s = begin(data);

    s->rc = rc;
    if (rc == ZOK && acl->count > 0) {
        s->stat = *stat;
        s->children = acl->count;
        snprintf(s->text, sizeof s->text, "%s:%d", acl->data[0].id.scheme, (int)acl->data[0].perms);
    }
    end(s);
}

zhandle_t *open_session(struct slot *events, const clientid_t *id)
{
    zhandle_t *zh;
    int seen = 0;

    slot_init(events);
    zh = zookeeper_init(address, on_event, 10000, id, events, 0);
    if (zh == NULL)
        return NULL;
    /* A connection may be lost and made again before it stays. */
    while (zoo_state(zh) != ZOO_CONNECTED_STATE) {
        if (is_unrecoverable(zh) || slot_wait(events, ++seen) != 0) {
            zookeeper_close(zh);
            return NULL;
        }
    }
    return zh;
}

static int run(const struct check *check)
{
    struct slot events;
    zhandle_t *zh = open_session(&events, NULL);
    int rc;

    if (zh == NULL) {
        printf("FAIL %s: no session\n", check->name);
        return 1;
    }
    rc = check->run(zh);
    if (rc != 0)
        printf("FAIL %s: %s\n", check->name, failure);
    else
        printf("PASS %s\n", check->name);
    fflush(stdout);
    zookeeper_close(zh);
    return rc != 0;
}

int main(int argc, char **argv)
{
    const struct check *lists[] = {sync_checks, async_checks};
    int failed = 0;
    size_t i;

    if (argc != 2)
        return 2;
    address = argv[1];
    zoo_set_debug_level(0);
    for (i = 0; i < 2; i++) {
        const struct check *check;

        for (check = lists[i]; check->name; check++)
            failed += run(check);
    }
    return failed != 0;
}
