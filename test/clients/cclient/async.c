/* The asynchronous calls of the C client. */
#include "check.h"

/* Sends one call, waits for its completion and compares its result code. */
#define CALL(s, call, want)                 \
    do {                                    \
        slot_init(&(s));                    \
        EXPECT(call, ZOK);                  \
        EXPECT(slot_wait(&(s), 1), 0);      \
        EXPECT((s).rc, want);               \
    } while (0)

static struct slot s;

/* The header declares these two completions as pointers to functions' pointers;
 * the library calls what it is given. */
#define UNWATCHED ((void_completion_t *)on_void)

static int writes(zhandle_t *zh)
{
    CALL(s, zoo_acreate(zh, "/a-data", "one", 3, &ZOO_OPEN_ACL_UNSAFE, 0, on_string, &s), ZOK);
    EXPECT_TEXT(s.text, "/a-data");
    CALL(s, zoo_acreate(zh, "/a-data", "one", 3, &ZOO_OPEN_ACL_UNSAFE, 0, on_string, &s), ZNODEEXISTS);
    CALL(s, zoo_acreate2(zh, "/a-data/s-", "x", 1, &ZOO_OPEN_ACL_UNSAFE, ZOO_SEQUENCE, on_string_stat, &s), ZOK);
    EXPECT_TEXT(s.text, "/a-data/s-0000000000");
    EXPECT(s.stat.dataLength, 1);
    CALL(s, zoo_acreate_ttl(zh, "/a-data/t", "x", 1, &ZOO_OPEN_ACL_UNSAFE, ZOO_PERSISTENT_WITH_TTL, 100000, on_string, &s), ZOK);
    CALL(s, zoo_acreate2_ttl(zh, "/a-data/u", "x", 1, &ZOO_OPEN_ACL_UNSAFE, ZOO_PERSISTENT_WITH_TTL, 100000, on_string_stat, &s), ZOK);
    CALL(s, zoo_aset(zh, "/a-data", "two", 3, 0, on_stat, &s), ZOK);
    EXPECT(s.stat.version, 1);
    CALL(s, zoo_aset(zh, "/a-data", "two", 3, 0, on_stat, &s), ZBADVERSION);
    CALL(s, zoo_aset_acl(zh, "/a-data", 0, &ZOO_READ_ACL_UNSAFE, on_void, &s), ZOK);
    CALL(s, zoo_aset(zh, "/a-data", "two", 3, -1, on_stat, &s), ZNOAUTH);
    CALL(s, zoo_aget_acl(zh, "/a-data", on_acl, &s), ZOK);
    EXPECT_TEXT(s.text, "world:1");
    EXPECT(s.stat.aversion, 1);
    CALL(s, zoo_adelete(zh, "/a-data", -1, on_void, &s), ZNOTEMPTY);
    CALL(s, zoo_adelete(zh, "/a-nosuch", -1, on_void, &s), ZNONODE);
    return 0;
}

static int reads(zhandle_t *zh)
{
    CALL(s, zoo_acreate(zh, "/a-reads", "text", 4, &ZOO_OPEN_ACL_UNSAFE, 0, on_string, &s), ZOK);
    CALL(s, zoo_acreate(zh, "/a-reads/child", NULL, -1, &ZOO_OPEN_ACL_UNSAFE, 0, on_string, &s), ZOK);
    CALL(s, zoo_aexists(zh, "/a-reads", 0, on_stat, &s), ZOK);
    EXPECT(s.stat.numChildren, 1);
    CALL(s, zoo_aexists(zh, "/a-nosuch", 0, on_stat, &s), ZNONODE);
    CALL(s, zoo_aget(zh, "/a-reads", 0, on_data, &s), ZOK);
    EXPECT_TEXT(s.text, "text");
    CALL(s, zoo_aget(zh, "/a-reads/child", 0, on_data, &s), ZOK);
    EXPECT(s.length, -1);
    CALL(s, zoo_aget_children(zh, "/a-reads", 0, on_strings, &s), ZOK);
    EXPECT(s.children, 1);
    CALL(s, zoo_aget_children2(zh, "/a-reads", 0, on_strings_stat, &s), ZOK);
    EXPECT(s.children, 1);
    EXPECT(s.stat.cversion, 1);
    CALL(s, zoo_async(zh, "/a-reads", on_string, &s), ZOK);
    EXPECT_TEXT(s.text, "/a-reads");
    CALL(s, zoo_agetconfig(zh, 0, on_data, &s), ZOK);
    CALL(s, zoo_areconfig(zh, NULL, "2", NULL, -1, on_data, &s), ZRECONFIGDISABLED);
    return 0;
}

static int watches(zhandle_t *zh)
{
    struct slot exists, get, children, children2, config;

    slot_init(&exists);
    slot_init(&get);
    slot_init(&children);
    slot_init(&children2);
    slot_init(&config);
    CALL(s, zoo_awexists(zh, "/a-watch", on_event, &exists, on_stat, &s), ZNONODE);
    CALL(s, zoo_acreate(zh, "/a-watch", "x", 1, &ZOO_OPEN_ACL_UNSAFE, 0, on_string, &s), ZOK);
    EXPECT(slot_wait(&exists, 1), 0);
    EXPECT(exists.type, ZOO_CREATED_EVENT);
    CALL(s, zoo_awget(zh, "/a-watch", on_event, &get, on_data, &s), ZOK);
    CALL(s, zoo_awget_children(zh, "/a-watch", on_event, &children, on_strings, &s), ZOK);
    CALL(s, zoo_awget_children2(zh, "/a-watch", on_event, &children2, on_strings_stat, &s), ZOK);
    CALL(s, zoo_awgetconfig(zh, on_event, &config, on_data, &s), ZOK);
    CALL(s, zoo_acreate(zh, "/a-watch/c", "x", 1, &ZOO_OPEN_ACL_UNSAFE, 0, on_string, &s), ZOK);
    EXPECT(slot_wait(&children, 1), 0);
    EXPECT(slot_wait(&children2, 1), 0);
    EXPECT(children.type, ZOO_CHILD_EVENT);
    CALL(s, zoo_aset(zh, "/a-watch", "y", 1, -1, on_stat, &s), ZOK);
    EXPECT(slot_wait(&get, 1), 0);
    EXPECT(get.type, ZOO_CHANGED_EVENT);
    CALL(s, zoo_awget(zh, "/a-watch", on_event, &get, on_data, &s), ZOK);
    CALL(s, zoo_aremove_watches(zh, "/a-watch", ZWATCHTYPE_DATA, on_event, &get, 0, UNWATCHED, &s), ZOK);
    CALL(s, zoo_awget(zh, "/a-watch", on_event, &get, on_data, &s), ZOK);
    CALL(s, zoo_aremove_all_watches(zh, "/a-watch", ZWATCHTYPE_DATA, 0, UNWATCHED, &s), ZOK);
    return 0;
}

static int multi(zhandle_t *zh)
{
    zoo_op_t ops[3];
    zoo_op_result_t results[3];
    struct Stat stat;

    memset(results, 0, sizeof results);
    zoo_create_op_init(&ops[0], "/a-multi", "x", 1, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0);
    zoo_set_op_init(&ops[1], "/a-multi", "y", 1, 0, &stat);
    zoo_check_op_init(&ops[2], "/a-multi", 1);
    CALL(s, zoo_amulti(zh, 3, ops, results, on_void, &s), ZOK);
    EXPECT(stat.version, 1);
    zoo_create_op_init(&ops[0], "/a-multi", "x", 1, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0);
    CALL(s, zoo_amulti(zh, 3, ops, results, on_void, &s), ZNODEEXISTS);
    return 0;
}

/* A thousand writes are sent before the first answer is read; they are done in
 * the order in which they were sent. */
static int order(zhandle_t *zh)
{
    char text[16];
    int i;

    CALL(s, zoo_acreate(zh, "/a-order", "", 0, &ZOO_OPEN_ACL_UNSAFE, 0, on_string, &s), ZOK);
    slot_init(&s);
    for (i = 0; i < 1000; i++) {
        snprintf(text, sizeof text, "%d", i);
        EXPECT(zoo_aset(zh, "/a-order", text, (int)strlen(text), i, on_stat, &s), ZOK);
    }
    EXPECT(slot_wait(&s, 1000), 0);
    EXPECT(s.rc, ZOK);
    EXPECT(s.stat.version, 1000);
    CALL(s, zoo_aget(zh, "/a-order", 0, on_data, &s), ZOK);
    EXPECT_TEXT(s.text, "999");
    return 0;
}

static int ephemerals(zhandle_t *zh)
{
    struct slot gone, other_events;
    zhandle_t *other = open_session(&other_events, NULL);

    EXPECT(other != NULL, 1);
    CALL(s, zoo_acreate(other, "/a-gone", "x", 1, &ZOO_OPEN_ACL_UNSAFE, ZOO_EPHEMERAL, on_string, &s), ZOK);
    slot_init(&gone);
    CALL(s, zoo_awexists(zh, "/a-gone", on_event, &gone, on_stat, &s), ZOK);
    EXPECT(s.stat.ephemeralOwner, zoo_client_id(other)->client_id);
    zookeeper_close(other);
    EXPECT(slot_wait(&gone, 1), 0);
    EXPECT(gone.type, ZOO_DELETED_EVENT);
    return 0;
}

static int wrong_password(zhandle_t *zh)
{
    struct slot events;
    clientid_t id = *zoo_client_id(zh);
    zhandle_t *thief;

    id.passwd[0] = (char)~id.passwd[0];
    slot_init(&events);
    thief = zookeeper_init(address, on_event, 10000, &id, &events, 0);
    EXPECT(thief != NULL, 1);
    EXPECT(slot_wait(&events, 1), 0);
    EXPECT(events.state, ZOO_EXPIRED_SESSION_STATE);
    zookeeper_close(thief);
    return 0;
}

const struct check async_checks[] = {
    {"asynchronous writes", writes},
    {"asynchronous reads", reads},
    {"asynchronous watches", watches},
    {"asynchronous multi", multi},
    {"a thousand writes in order", order},
    {"an ephemeral node goes with its session", ephemerals},
    {"a wrong password expires the thief", wrong_password},
    {NULL, NULL},
};
