/* The synchronous calls of the C client. */
#include "check.h"

static char buffer[256];
static struct Stat stat;

static int size(void) { return sizeof buffer; }

static int data(zhandle_t *zh)
{
    char path[64];
    int length = size();

    EXPECT(zoo_create(zh, "/c-data", "\0\1\2", 3, &ZOO_OPEN_ACL_UNSAFE, ZOO_PERSISTENT, path, sizeof path), ZOK);
    EXPECT_TEXT(path, "/c-data");
    EXPECT(zoo_get(zh, "/c-data", 0, buffer, &length, &stat), ZOK);
    EXPECT(length, 3);
    EXPECT(memcmp(buffer, "\0\1\2", 3), 0);
    EXPECT(stat.version, 0);
    EXPECT(stat.dataLength, 3);
    EXPECT(stat.czxid, stat.mzxid);
    EXPECT(zoo_set(zh, "/c-data", "new", 3, 0), ZOK);
    EXPECT(zoo_set(zh, "/c-data", "x", 1, 0), ZBADVERSION);
    EXPECT(zoo_set2(zh, "/c-data", "newer", 5, 1, &stat), ZOK);
    EXPECT(stat.version, 2);
    EXPECT(zoo_set(zh, "/c-data", NULL, -1, -1), ZOK);
    length = size();
    EXPECT(zoo_get(zh, "/c-data", 0, buffer, &length, &stat), ZOK);
    EXPECT(length, -1);
    EXPECT(zoo_delete(zh, "/c-data", 0), ZBADVERSION);
    EXPECT(zoo_delete(zh, "/c-data", 3), ZOK);
    EXPECT(zoo_exists(zh, "/c-data", 0, &stat), ZNONODE);
    return 0;
}

static int kinds(zhandle_t *zh)
{
    char path[64];
    struct String_vector children;

    EXPECT(zoo_create2(zh, "/c-kinds", "", 0, &ZOO_OPEN_ACL_UNSAFE, ZOO_PERSISTENT, path, sizeof path, &stat), ZOK);
    EXPECT(stat.cversion, 0);
    EXPECT(zoo_create(zh, "/c-kinds/e", "x", 1, &ZOO_OPEN_ACL_UNSAFE, ZOO_EPHEMERAL, path, sizeof path), ZOK);
    EXPECT(zoo_exists(zh, "/c-kinds/e", 0, &stat), ZOK);
    EXPECT(stat.ephemeralOwner, zoo_client_id(zh)->client_id);
    EXPECT(zoo_create(zh, "/c-kinds/e/f", "x", 1, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0), ZNOCHILDRENFOREPHEMERALS);
    EXPECT(zoo_create(zh, "/c-kinds/s-", "x", 1, &ZOO_OPEN_ACL_UNSAFE, ZOO_SEQUENCE, path, sizeof path), ZOK);
    EXPECT_TEXT(path, "/c-kinds/s-0000000001");
    EXPECT(zoo_create(zh, "/c-kinds/s-", "x", 1, &ZOO_OPEN_ACL_UNSAFE, ZOO_EPHEMERAL | ZOO_SEQUENCE, path, sizeof path), ZOK);
    EXPECT_TEXT(path, "/c-kinds/s-0000000002");
    EXPECT(zoo_create(zh, "/c-kinds/c", "x", 1, &ZOO_OPEN_ACL_UNSAFE, ZOO_CONTAINER, path, sizeof path), ZOK);
    EXPECT(zoo_create_ttl(zh, "/c-kinds/t", "x", 1, &ZOO_OPEN_ACL_UNSAFE, ZOO_PERSISTENT_WITH_TTL, 100000, path, sizeof path), ZOK);
    EXPECT(zoo_create2_ttl(zh, "/c-kinds/t-", "x", 1, &ZOO_OPEN_ACL_UNSAFE, ZOO_PERSISTENT_SEQUENTIAL_WITH_TTL, 100000,
                           path, sizeof path, &stat), ZOK);
    EXPECT_TEXT(path, "/c-kinds/t-0000000005");
    EXPECT(zoo_get_children(zh, "/c-kinds", 0, &children), ZOK);
    EXPECT(children.count, 6);
    deallocate_String_vector(&children);
    EXPECT(zoo_get_children2(zh, "/c-kinds", 0, &children, &stat), ZOK);
    EXPECT(stat.numChildren, 6);
    EXPECT(stat.cversion, 6);
    deallocate_String_vector(&children);
    EXPECT(zoo_delete(zh, "/c-kinds", -1), ZNOTEMPTY);
    return 0;
}

static int errors(zhandle_t *zh)
{
    struct String_vector children;
    int length = size();

    EXPECT(zoo_create(zh, "/c-errors", "x", 1, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0), ZOK);
    EXPECT(zoo_create(zh, "/c-errors", "x", 1, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0), ZNODEEXISTS);
    EXPECT(zoo_create(zh, "/c-errors/a/b", "x", 1, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0), ZNONODE);
    EXPECT(zoo_create(zh, "c-errors", "x", 1, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0), ZBADARGUMENTS);
    EXPECT(zoo_create(zh, "/c-errors/../x", "x", 1, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0), ZBADARGUMENTS);
    EXPECT(zoo_get(zh, "/c-nosuch", 0, buffer, &length, &stat), ZNONODE);
    EXPECT(zoo_set(zh, "/c-nosuch", "x", 1, -1), ZNONODE);
    EXPECT(zoo_delete(zh, "/c-nosuch", -1), ZNONODE);
    EXPECT(zoo_get_children(zh, "/c-nosuch", 0, &children), ZNONODE);
    EXPECT(zoo_delete(zh, "/c-errors", -1), ZOK);
    return 0;
}

static int watches(zhandle_t *zh)
{
    struct slot exists, get, children, children2;
    struct String_vector strings;
    int length = size();

    slot_init(&exists);
    slot_init(&get);
    slot_init(&children);
    slot_init(&children2);
    EXPECT(zoo_wexists(zh, "/c-watch", on_event, &exists, &stat), ZNONODE);
    EXPECT(zoo_create(zh, "/c-watch", "x", 1, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0), ZOK);
    EXPECT(slot_wait(&exists, 1), 0);
    EXPECT(exists.type, ZOO_CREATED_EVENT);
    EXPECT_TEXT(exists.path, "/c-watch");
    EXPECT(zoo_wget(zh, "/c-watch", on_event, &get, buffer, &length, &stat), ZOK);
    EXPECT(zoo_wget_children(zh, "/c-watch", on_event, &children, &strings), ZOK);
    EXPECT(zoo_set(zh, "/c-watch", "y", 1, -1), ZOK);
    EXPECT(slot_wait(&get, 1), 0);
    EXPECT(get.type, ZOO_CHANGED_EVENT);
    EXPECT(zoo_create(zh, "/c-watch/a", "x", 1, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0), ZOK);
    EXPECT(slot_wait(&children, 1), 0);
    EXPECT(children.type, ZOO_CHILD_EVENT);
    EXPECT(zoo_wget_children2(zh, "/c-watch", on_event, &children2, &strings, &stat), ZOK);
    deallocate_String_vector(&strings);
    EXPECT(zoo_wexists(zh, "/c-watch/a", on_event, &exists, &stat), ZOK);
    EXPECT(zoo_delete(zh, "/c-watch/a", -1), ZOK);
    EXPECT(slot_wait(&exists, 2), 0);
    EXPECT(exists.type, ZOO_DELETED_EVENT);
    EXPECT(slot_wait(&children2, 1), 0);
    EXPECT(zoo_delete(zh, "/c-watch", -1), ZOK);
    return 0;
}

static int removed_watches(zhandle_t *zh)
{
    struct slot first, second, gone;

    slot_init(&first);
    slot_init(&second);
    slot_init(&gone);
    EXPECT(zoo_wexists(zh, "/c-unwatch", on_event, &first, &stat), ZNONODE);
    EXPECT(zoo_wexists(zh, "/c-unwatch", on_event, &second, &stat), ZNONODE);
    EXPECT(zoo_remove_watches(zh, "/c-unwatch", ZWATCHTYPE_DATA, on_event, &gone, 0), ZNOWATCHER);
    EXPECT(zoo_remove_watches(zh, "/c-unwatch", ZWATCHTYPE_DATA, on_event, &first, 0), ZOK);
    EXPECT(zoo_create(zh, "/c-unwatch", "x", 1, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0), ZOK);
    EXPECT(slot_wait(&second, 1), 0);
    EXPECT(second.type, ZOO_CREATED_EVENT);
    EXPECT(zoo_wexists(zh, "/c-unwatch", on_event, &gone, &stat), ZOK);
    EXPECT(zoo_remove_all_watches(zh, "/c-unwatch", ZWATCHTYPE_DATA, 0), ZOK);
    EXPECT(zoo_remove_all_watches(zh, "/c-unwatch", ZWATCHTYPE_CHILD, 0), ZNOWATCHER);
    EXPECT(zoo_delete(zh, "/c-unwatch", -1), ZOK);
    return 0;
}

static int acls(zhandle_t *zh)
{
    struct slot added, other_events;
    struct ACL_vector acl;
    zhandle_t *other;
    int length = size();
    struct ACL reader[] = {{ZOO_PERM_READ, {"world", "anyone"}}, {ZOO_PERM_ALL, {"ip", "127.0.0.1"}}};
    struct ACL nonsense[] = {{ZOO_PERM_ALL, {"nosuch", "x"}}};
    struct ACL_vector readers = {2, reader}, bad = {1, nonsense};

    slot_init(&added);
    EXPECT(zoo_add_auth(zh, "digest", "user:secret", 11, on_void, &added), ZOK);
    EXPECT(slot_wait(&added, 1), 0);
    EXPECT(added.rc, ZOK);
    EXPECT(zoo_create(zh, "/c-acl", "hidden", 6, &ZOO_CREATOR_ALL_ACL, 0, NULL, 0), ZOK);
    EXPECT(zoo_get_acl(zh, "/c-acl", &acl, &stat), ZOK);
    EXPECT(acl.count, 1);
    EXPECT_TEXT(acl.data[0].id.scheme, "digest");
    deallocate_ACL_vector(&acl);
    other = open_session(&other_events, NULL);
    EXPECT(other != NULL, 1);
    EXPECT(zoo_get(other, "/c-acl", 0, buffer, &length, &stat), ZNOAUTH);
    EXPECT(zoo_set_acl(other, "/c-acl", -1, &ZOO_OPEN_ACL_UNSAFE), ZNOAUTH);
    EXPECT(zoo_delete(other, "/c-acl", -1), ZOK); /* deleting is the parent's right */
    EXPECT(zoo_create(zh, "/c-acl", "open", 4, &ZOO_CREATOR_ALL_ACL, 0, NULL, 0), ZOK);
    EXPECT(zoo_set_acl(zh, "/c-acl", 5, &readers), ZBADVERSION);
    EXPECT(zoo_set_acl(zh, "/c-acl", 0, &readers), ZOK);
    EXPECT(zoo_set_acl(zh, "/c-acl", -1, &bad), ZINVALIDACL);
    length = size();
    EXPECT(zoo_get(other, "/c-acl", 0, buffer, &length, &stat), ZOK);
    EXPECT(stat.aversion, 1);
    EXPECT(zoo_delete(zh, "/c-acl", -1), ZOK);
    zookeeper_close(other);
    return 0;
}

static int multi(zhandle_t *zh)
{
    zoo_op_t ops[6];
    zoo_op_result_t results[6];
    char first[64], second[64];

    memset(results, 0, sizeof results);
    zoo_create_op_init(&ops[0], "/c-multi", "x", 1, &ZOO_OPEN_ACL_UNSAFE, 0, first, sizeof first);
    zoo_create_op_init(&ops[1], "/c-multi/s-", "x", 1, &ZOO_OPEN_ACL_UNSAFE, ZOO_SEQUENCE, second, sizeof second);
    zoo_set_op_init(&ops[2], "/c-multi", "y", 1, 0, &stat);
    zoo_check_op_init(&ops[3], "/c-multi", 1);
    zoo_create_op_init(&ops[4], "/c-multi/b", "x", 1, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0);
    zoo_delete_op_init(&ops[5], "/c-multi/b", -1);
    EXPECT(zoo_multi(zh, 6, ops, results), ZOK);
    EXPECT_TEXT(second, "/c-multi/s-0000000000");
    EXPECT(stat.version, 1);

    memset(results, 0, sizeof results);
    zoo_create_op_init(&ops[0], "/c-multi/c", "x", 1, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0);
    zoo_check_op_init(&ops[1], "/c-multi", 7);
    zoo_delete_op_init(&ops[2], "/c-multi", -1);
    EXPECT(zoo_multi(zh, 3, ops, results), ZBADVERSION);
    EXPECT(results[0].err, ZOK);
    EXPECT(results[1].err, ZBADVERSION);
    EXPECT(results[2].err, ZRUNTIMEINCONSISTENCY);
    EXPECT(zoo_exists(zh, "/c-multi/c", 0, &stat), ZNONODE);
    return 0;
}

static int configuration(zhandle_t *zh)
{
    int length = size();

    EXPECT(zoo_getconfig(zh, 0, buffer, &length, &stat), ZOK);
    length = size();
    EXPECT(zoo_reconfig(zh, "server.2=127.0.0.1:1:2:participant;3", NULL, NULL, -1, buffer, &length, &stat), ZRECONFIGDISABLED);
    return 0;
}

static int handles(zhandle_t *zh)
{
    struct sockaddr_storage host;
    socklen_t length = sizeof host;

    EXPECT(zookeeper_get_connected_host(zh, (struct sockaddr *)&host, &length) != NULL, 1);
    EXPECT_TEXT(zoo_get_current_server(zh), address);
    EXPECT(zoo_recv_timeout(zh), 10000);
    EXPECT(is_unrecoverable(zh), ZOK);
    EXPECT(zoo_set_servers(zh, address), ZOK);
    EXPECT(zoo_state(zh), ZOO_CONNECTED_STATE);
    return 0;
}

static int moved_session(zhandle_t *zh)
{
    struct slot events;
    clientid_t id = *zoo_client_id(zh);
    zhandle_t *again;

    EXPECT(zoo_create(zh, "/c-moved", "x", 1, &ZOO_OPEN_ACL_UNSAFE, ZOO_EPHEMERAL, NULL, 0), ZOK);
    /* The old handle is sent where nobody listens, or it would take its session
     * back, again and again. */
    EXPECT(zoo_set_servers(zh, "127.0.0.1:1"), ZOK);
    again = open_session(&events, &id);
    EXPECT(again != NULL, 1);
    EXPECT(zoo_client_id(again)->client_id, id.client_id);
    EXPECT(zoo_exists(again, "/c-moved", 0, &stat), ZOK);
    EXPECT(stat.ephemeralOwner, id.client_id);
    zookeeper_close(again);
    return 0;
}

const struct check sync_checks[] = {
    {"data, versions and deletion", data},
    {"nodes of every kind", kinds},
    {"the errors of every call", errors},
    {"watches of every read", watches},
    {"watches taken back", removed_watches},
    {"access lists and identities", acls},
    {"a multi is all or nothing", multi},
    {"the configuration of one server", configuration},
    {"what a handle knows", handles},
    {"a session moves to a new connection", moved_session},
    {NULL, NULL},
};
