#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "adapters/sqlite/sqlite_dlq.h"
#include "adapters/sqlite/sqlite_open.h"
#include "adapters/sqlite/sqlite_outbox.h"
#include "adapters/sqlite/sqlite_subscriptions.h"
#include "contract/outbox_contract.h"
#include "contract/sqlite_file.h"

/* SQLite stores when something is wrong: files that are no database, locks, a full disk, a killed
 * process, and deadlines and cancels while a transaction is stuck. */

enum { MANY = 40, TMPFS_BYTES = 8 * 1024 * 1024 };
static const uint64_t ns_per_ms = 1000000;
#define S1 "SESSION#s1"

static struct sqlite_file file;
static struct outbox_backend backend = {.ctx = &file};

static struct gb_err try_open(const char *path)
{
    struct gb_sqlite_outbox_cfg cfg = {.path = path};
    return gb_sqlite_outbox_new(file.pool, &cfg, &backend.store);
}

static void open_store(void)
{
    struct gb_err err = try_open(file.path);
    if (gb_failed(err)) fail_msg("%s", err.message);
}

static void close_store(void)
{
    STORE_CLOSE(&backend.driver, backend.store);
}

static int init(void **state)
{
    *state = &backend;
    store_driver_init_loop(&backend.driver);
    sqlite_file_init(&file, &backend.driver);
    return 0;
}

static int deinit(void **state)
{
    (void)state;
    sqlite_file_deinit(&file);
    store_driver_deinit(&backend.driver);
    outbox_records_free();
    return 0;
}

static struct gb_outbox_record record(const char *envelope_id)
{
    return outbox_record(
        &(struct outbox_spec){.envelope_id = envelope_id, .binding_id = "b1", .session_id = "s1"});
}

static void refused(const char *path, enum gb_code code, const char *why)
{
    struct gb_err err = try_open(path);
    if (err.code != code || strstr(err.message, why) == NULL || strstr(err.message, path) == NULL)
        fail_msg("%s: code %s, \"%s\"", path, gb_code_name(err.code), err.message);
}

/* --- opening --- */

static void write_file(const char *path, const void *data, size_t size)
{
    int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, data, size), size);
    assert_int_equal(close(fd), 0);
}

static size_t read_file(const char *path, char *data, size_t size)
{
    int fd = open(path, O_RDONLY);
    assert_true(fd >= 0);
    ssize_t got = read(fd, data, size);
    assert_true(got >= 0);
    assert_int_equal(close(fd), 0);
    return (size_t)got;
}

static void what_is_no_database_is_left_alone(void **state)
{
    (void)state;
    static char database[65536], before[65536], after[65536];
    sqlite_file_exec(file.path, "PRAGMA journal_mode=WAL; CREATE TABLE t(x); INSERT INTO t"
                                " VALUES(zeroblob(20000))");
    size_t size = read_file(file.path, database, sizeof database);
    assert_true(size > 16384);
    static const struct {
        const char *name;
        size_t keep, damaged_at;
        const char *text; /* instead of the database */
    } rows[] = {
        {"text", 0, 0, "just a text file\n"},
        {"long text", 0, 0, NULL},
        {"one byte", 0, 0, "x"},
        {"magic only", 16, 0, NULL},
        {"header only", 100, 0, NULL},
        {"cut in the middle", 12288, 0, NULL},
        {"schema page damaged", 16384, 101, NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        print_message("%s\n", rows[i].name);
        memset(before, '#', 4096);
        size_t length = rows[i].text != NULL ? strlen(rows[i].text) : 4096;
        if (rows[i].text != NULL) memcpy(before, rows[i].text, length);
        if (rows[i].keep > 0) memcpy(before, database, length = rows[i].keep);
        if (rows[i].damaged_at > 0) memset(before + rows[i].damaged_at, 0xff, 3000);
        write_file(file.path, before, length);
        refused(file.path, GB_INVALID_CONFIG, "the file was left as it is");
        assert_int_equal(read_file(file.path, after, sizeof after), length);
        assert_memory_equal(before, after, length);
    }
    write_file(file.path, "", 0); /* an empty file is a new database */
    open_store();
    close_store();
}

static void paths_that_cannot_be(void **state)
{
    (void)state;
    char path[160];
    (void)snprintf(path, sizeof path, "%s/absent/s.db", file.directory);
    refused(path, GB_INVALID_CONFIG, "No such file");
    refused(file.directory, GB_INVALID_CONFIG, "directory");
    (void)snprintf(path, sizeof path, "%s/link.db", file.directory);
    write_file(file.path, "", 0);
    assert_int_equal(symlink(file.path, path), 0);
    refused(path, GB_INVALID_CONFIG, "symbolic link");
    assert_int_equal(try_open("").code, GB_INVALID_CONFIG);
    (void)snprintf(path, sizeof path, "%s/fifo.db", file.directory);
    assert_int_equal(mkfifo(path, 0600), 0);
    refused(path, GB_INVALID_CONFIG, "regular file");
    char wal[176];
    (void)snprintf(path, sizeof path, "%s/other.db", file.directory);
    (void)snprintf(wal, sizeof wal, "%s-wal", path);
    assert_int_equal(symlink(file.path, wal), 0);
    refused(path, GB_INVALID_CONFIG, "regular file");
}

static void check_05_31_settings(void **state)
{
    (void)state;
    mode_t old = umask(0);
    open_store();
    (void)umask(old);
    struct stat st;
    assert_int_equal(stat(file.path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    assert_string_equal(sqlite_file_query(file.path, "PRAGMA journal_mode"), "wal");
    close_store();
    /* The others belong to the connection, so they are asked on one that the stores' way of opening
     * made. */
    static const struct {
        const char *pragma;
        int64_t want[2];                        /* plain, strict */
    } rows[] = {{"PRAGMA synchronous", {2, 2}}, /* FULL */
                {"PRAGMA busy_timeout", {5000, 5000}},
                {"PRAGMA foreign_keys", {0, 1}}};
    for (int strict = 0; strict < 2; strict++) {
        struct gb_sqlite_connection c = {0};
        assert_int_equal(gb_sqlite_open(file.path, strict == 1, &c).code, GB_OK);
        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
            sqlite3_stmt *stmt = NULL;
            assert_int_equal(sqlite3_prepare_v2(c.sql, rows[i].pragma, -1, &stmt, NULL), SQLITE_OK);
            assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
            print_message("%s, strict %d\n", rows[i].pragma, strict);
            assert_int_equal(sqlite3_column_int64(stmt, 0), rows[i].want[strict]);
            assert_int_equal(sqlite3_finalize(stmt), SQLITE_OK);
        }
        gb_sqlite_close(&c);
    }
}

static void memory_database_for_tests(void **state)
{
    (void)state;
    assert_int_equal(try_open(":memory:").code, GB_OK);
    struct gb_outbox *first = backend.store;
    assert_int_equal(try_open(":memory:").code, GB_OK);
    struct gb_outbox_record r = record("A");
    assert_int_equal(outbox_persist(&backend, &r, 1, NULL), GB_OK);
    outbox_claim_is(&backend, S1, "o", 1, 1, "A");
    close_store();
    backend.store = first; /* a database of its own */
    assert_int_equal(outbox_stats(&backend, S1).claimed, 0);
    close_store();
}

/* A pool of its own: one in the parent's would join. */
static int child_opens(const char *path, const char *want)
{
    struct sqlite_file own = file;
    sqlite_file_pool(&own, &backend.driver);
    struct gb_sqlite_outbox_cfg cfg = {.path = path};
    struct gb_outbox *o = NULL;
    struct gb_err err = gb_sqlite_outbox_new(own.pool, &cfg, &o);
    bool right = err.code == GB_UNAVAILABLE && strstr(err.message, "in use by another") != NULL &&
                 strstr(err.message, want) != NULL;
    return right ? 0 : 1;
}

static void check_refused_in_child(const char *path, const char *want)
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) _exit(child_opens(path, want));
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void another_process_is_refused(void **state)
{
    (void)state;
    open_store();
    char pid[32];
    (void)snprintf(pid, sizeof pid, "pid %ld", (long)getpid());
    check_refused_in_child(file.path, pid);
    close_store();
}

/* The lock beside the file is for people; the one on the file itself can't be got round. */
static void no_other_name_and_no_deleted_lock_lets_a_process_in(void **state)
{
    (void)state;
    open_store();
    char other[sizeof file.path + 16];
    (void)snprintf(other, sizeof other, "%s.other", file.path);
    assert_int_equal(link(file.path, other), 0);
    check_refused_in_child(other, "under another name");
    char lock[sizeof file.path + 16];
    (void)snprintf(lock, sizeof lock, "%s.lock", file.path);
    assert_int_equal(unlink(lock), 0);
    check_refused_in_child(file.path, "one process and one name");
    assert_int_equal(unlink(other), 0);
    close_store();
}

static void persist_later(struct gb_outbox_persist *q, const struct gb_outbox_record *r,
                          size_t count)
{
    uint64_t deadline_ns = q->op.deadline_ns;
    *q = (struct gb_outbox_persist){.records = r, .count = count};
    q->op.deadline_ns = deadline_ns;
    store_driver_expect(&backend.driver);
    backend.store->ops->persist(backend.store, q, store_driver_done, &backend.driver);
}

/* What is stored in a file that nobody can open again is lost with the process. */
static void deleted_file_takes_nothing_and_gives_what_it_has(void **state)
{
    (void)state;
    open_store();
    struct gb_outbox_record kept = record("kept");
    struct gb_outbox_persist q[3] = {0};
    persist_later(&q[0], &kept, 1);
    store_driver_run(&backend.driver);
    assert_int_equal(q[0].op.result.code, GB_OK);
    char aside[128];
    (void)snprintf(aside, sizeof aside, "%s.aside", file.path);
    assert_int_equal(rename(file.path, aside), 0);
    struct gb_outbox_record lost = record("lost");
    persist_later(&q[1], &lost, 1);
    store_driver_run(&backend.driver);
    assert_int_equal(q[1].op.result.code, GB_UNAVAILABLE);
    assert_non_null(strstr(q[1].op.result.message, "deleted, moved or replaced"));
    outbox_claim_is(&backend, S1, "o", 1, 10, "kept");
    assert_int_equal(rename(aside, file.path), 0); /* put back: it goes on */
    persist_later(&q[2], &lost, 1);
    store_driver_run(&backend.driver);
    assert_int_equal(q[2].op.result.code, GB_OK);
    close_store();
}

static void roles_share_one_database(void **state)
{
    (void)state;
    char spelled[160];
    (void)snprintf(spelled, sizeof spelled, "%s/./store.db", file.directory);
    struct gb_dlq *dlq = NULL;
    struct gb_subscriptions *subscriptions = NULL;
    open_store();
    struct gb_sqlite_dlq_cfg dlq_cfg = {.path = spelled};
    assert_int_equal(gb_sqlite_dlq_new(file.pool, &dlq_cfg, &dlq).code, GB_OK);
    struct gb_sqlite_subscriptions_cfg strict = {.path = file.path};
    assert_int_equal(gb_sqlite_subscriptions_new(file.pool, &strict, &subscriptions).code, GB_OK);
    struct gb_outbox *first = backend.store;
    open_store();
    struct gb_outbox_record r = record("A");
    assert_int_equal(outbox_persist(&backend, &r, 1, NULL), GB_OK);
    STORE_CLOSE(&backend.driver, dlq);
    close_store();
    backend.store = first;
    assert_int_equal(outbox_stats(&backend, S1).pending, 1);
    close_store();
    STORE_CLOSE(&backend.driver, subscriptions);
    assert_int_equal(chmod(file.path, 0644), 0);
    open_store(); /* loose is a warning for an outbox, and refused for subscriptions */
    assert_int_equal(gb_sqlite_subscriptions_new(file.pool, &strict, &subscriptions).code,
                     GB_INVALID_CONFIG);
    close_store();
}

/* --- a transaction that can't go on --- */

static sqlite3 *lock_database(void)
{
    sqlite3 *sql = sqlite_file_connect(file.path);
    assert_int_equal(sqlite3_exec(sql, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    return sql;
}

static void unlock_database(sqlite3 *sql)
{
    assert_int_equal(sqlite3_exec(sql, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(sql), SQLITE_OK);
}

struct stopper {
    struct gb_timer timer;
    struct gb_loop *loop;
};

static void stop_loop(struct gb_timer *timer)
{
    gb_loop_stop(GB_CONTAINER_OF(timer, struct stopper, timer)->loop);
}

static void run_for(uint64_t ms)
{
    struct stopper s = {.loop = backend.driver.loop};
    assert_int_equal(gb_timer_init(&s.timer, backend.driver.reactor, stop_loop).code, GB_OK);
    gb_timer_start(&s.timer, gb_reactor_now_ns(backend.driver.reactor) + ms * ns_per_ms);
    gb_loop_run(backend.driver.loop);
    gb_timer_deinit(&s.timer);
}

static void deadline_and_cancel_while_a_transaction_hangs(void **state)
{
    (void)state;
    open_store();
    sqlite3 *other = lock_database();
    struct gb_outbox_record r[] = {record("A"), record("B"), record("C"), record("D")};
    struct gb_outbox_persist q[4] = {0};
    run_for(1); /* sets the clock that deadlines are counted from */
    q[0].op.deadline_ns = gb_reactor_now_ns(backend.driver.reactor) + 100 * ns_per_ms;
    persist_later(&q[0], &r[0], 1);
    run_for(10); /* A is inside a transaction that waits for the lock */
    q[1].op.deadline_ns = gb_reactor_now_ns(backend.driver.reactor) + 20 * ns_per_ms;
    persist_later(&q[1], &r[1], 1);
    persist_later(&q[2], &r[2], 1);
    persist_later(&q[3], &r[3], 1);
    gb_op_cancel(&q[0].op);
    gb_op_cancel(&q[2].op);
    run_for(200);
    assert_int_equal(q[1].op.result.code, GB_TIMEOUT);
    assert_int_equal(q[2].op.result.code, GB_CANCELLED);
    assert_true(gb_op_pending(&q[0].op));
    assert_true(gb_op_pending(&q[3].op));
    unlock_database(other);
    store_driver_run(&backend.driver);
    assert_int_equal(q[0].op.result.code, GB_OK); /* past its deadline, cancelled, and stored */
    assert_int_equal(q[3].op.result.code, GB_OK);
    outbox_claim_is(&backend, S1, "o", 1, 10, "A D");
    close_store();
}

static void lock_past_the_timeout_is_unavailable(void **state)
{
    (void)state;
    open_store();
    sqlite3 *other = lock_database();
    struct gb_outbox_record r = record("A");
    struct gb_outbox_persist q = {0};
    persist_later(&q, &r, 1);
    store_driver_run(&backend.driver);
    assert_int_equal(q.op.result.code, GB_UNAVAILABLE);
    assert_non_null(strstr(q.op.result.message, "locked"));
    unlock_database(other);
    assert_int_equal(outbox_persist(&backend, &r, 1, NULL), GB_OK);
    close_store();
}

/* One request's refusal is its own; the others of its transaction are stored. */
static void refusals_share_a_transaction_with_successes(void **state)
{
    (void)state;
    open_store();
    struct outbox_spec clash = {
        .envelope_id = "X", .binding_id = "b1", .session_id = "s1", .id = "same"};
    struct gb_outbox_record a = outbox_record(&clash);
    clash.envelope_id = "Y";
    struct gb_outbox_record b[] = {record("Z"), outbox_record(&clash)};
    struct gb_outbox_record c = record("C");
    struct gb_outbox_persist q[4] = {0};
    persist_later(&q[0], &a, 1);
    persist_later(&q[1], b, 2);
    persist_later(&q[2], &a, 1);
    persist_later(&q[3], &c, 1);
    store_driver_run(&backend.driver);
    assert_int_equal(q[0].op.result.code, GB_OK);
    assert_int_equal(q[1].op.result.code, GB_INVALID_OUTBOX_RECORD);
    assert_int_equal(q[2].op.result.code, GB_DUPLICATE_RECORD);
    assert_int_equal(q[3].op.result.code, GB_OK);
    outbox_claim_is(&backend, S1, "o", 1, 10, "X C");
    close_store();
}

/* --- a full disk --- */

struct small_disk {
    char path[128];
    bool mounted;
    struct rlimit before;
};

/* A real one where we may mount it, else a limit of the file size, which SQLite reports as an I/O
 * error. */
static void small_disk_make(struct small_disk *d)
{
    (void)snprintf(d->path, sizeof d->path, "%s/small", file.directory);
    assert_int_equal(mkdir(d->path, 0700), 0);
    d->mounted = mount("tmpfs", d->path, "tmpfs", 0, "size=8m") == 0;
    if (!d->mounted)
        print_message("no tmpfs (%s): a file size limit stands for it\n", strerror(errno));
    (void)snprintf(file.path, sizeof file.path, "%s/small/s.db", file.directory);
}

static void small_disk_fill(struct small_disk *d)
{
    if (!d->mounted) {
        assert_int_equal(getrlimit(RLIMIT_FSIZE, &d->before), 0);
        assert_true(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
        struct rlimit limit = {65536, d->before.rlim_max};
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
        return;
    }
    char ballast[160];
    (void)snprintf(ballast, sizeof ballast, "%s/ballast", d->path);
    int fd = open(ballast, O_CREAT | O_WRONLY, 0600);
    assert_true(fd >= 0);
    static const char block[4096];
    ssize_t written = 0;
    for (size_t total = 0; written >= 0 && total <= TMPFS_BYTES; total += sizeof block)
        written = write(fd, block, sizeof block);
    assert_int_equal(errno, ENOSPC);
    assert_int_equal(close(fd), 0);
}

static void small_disk_relieve(const struct small_disk *d)
{
    if (!d->mounted) {
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &d->before), 0);
        return;
    }
    char ballast[160];
    (void)snprintf(ballast, sizeof ballast, "%s/ballast", d->path);
    assert_int_equal(unlink(ballast), 0);
}

static void full_disk_recovers_without_restart(void **state)
{
    (void)state;
    struct small_disk disk;
    small_disk_make(&disk);
    open_store();
    struct gb_outbox_record a = record("A");
    assert_int_equal(outbox_persist(&backend, &a, 1, NULL), GB_OK);
    small_disk_fill(&disk);
    char big[8192];
    memset(big, 'x', sizeof big - 1);
    big[sizeof big - 1] = '\0';
    struct gb_outbox_persist q[MANY] = {0};
    struct gb_outbox_record r[MANY];
    for (size_t i = 0; i < MANY; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "r%zu", i);
        r[i] = outbox_record(&(struct outbox_spec){
            .envelope_id = name, .binding_id = "b1", .session_id = "s1", .payload = big});
        persist_later(&q[i], &r[i], 1);
    }
    store_driver_run(&backend.driver); /* one transaction: all fail alike */
    for (size_t i = 0; i < MANY; i++) {
        assert_int_equal(q[i].op.result.code, GB_UNAVAILABLE);
        assert_int_equal(q[i].stored, 0);
        assert_non_null(strstr(q[i].op.result.message, file.path));
    }
    print_message("%s\n", q[0].op.result.message);
    assert_int_equal(gb_metrics_sum(file.metrics, "SQLiteStoreUnhealthy"), 1);
    assert_int_equal(outbox_stats(&backend, S1).pending, 1); /* reads go on */
    small_disk_relieve(&disk);
    for (size_t i = 0; i < MANY; i++)
        assert_int_equal(outbox_persist(&backend, &r[i], 1, NULL), GB_OK);
    assert_int_equal(outbox_stats(&backend, S1).pending, MANY + 1);
    outbox_claim_is(&backend, S1, "o", 1, 3, "A r0 r1");
    close_store();
    if (disk.mounted) assert_int_equal(umount(disk.path), 0);
}

enum { LEFT_BYTES = 400 * 1024 };

/* Some space is left, less than all waiting records need. */
static void small_disk_leave(struct small_disk *d)
{
    if (!d->mounted) {
        struct rlimit limit = {LEFT_BYTES, d->before.rlim_max};
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
        return;
    }
    char ballast[160];
    struct stat st;
    (void)snprintf(ballast, sizeof ballast, "%s/ballast", d->path);
    assert_int_equal(stat(ballast, &st), 0);
    assert_int_equal(truncate(ballast, st.st_size - LEFT_BYTES), 0);
}

/* A transaction larger than the space left fails whole; the next ones shrink until a part goes
 * in. */
static void a_part_goes_in_where_all_do_not_fit(void **state)
{
    (void)state;
    struct small_disk disk;
    small_disk_make(&disk);
    open_store();
    small_disk_fill(&disk);
    small_disk_leave(&disk);
    enum { RECORDS = 200 };
    char big[8192];
    memset(big, 'x', sizeof big - 1);
    big[sizeof big - 1] = '\0';
    static struct gb_outbox_persist q[RECORDS];
    struct gb_outbox_record r[RECORDS];
    for (size_t i = 0; i < RECORDS; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "r%zu", i);
        r[i] = outbox_record(&(struct outbox_spec){
            .envelope_id = name, .binding_id = "b1", .session_id = "s1", .payload = big});
    }
    uint64_t stored = 0;
    for (int round = 0; round < 10 && stored == 0; round++) {
        memset(q, 0, sizeof q);
        for (size_t i = 0; i < RECORDS; i++) persist_later(&q[i], &r[i], 1);
        store_driver_run(&backend.driver);
        for (size_t i = 0; i < RECORDS; i++) stored += q[i].stored;
    }
    assert_true(stored > 0 && stored < RECORDS);
    assert_int_equal(outbox_stats(&backend, S1).pending, stored);
    small_disk_relieve(&disk);
    close_store();
    if (disk.mounted) assert_int_equal(umount(disk.path), 0);
}

/* --- kill -9 --- */

/* Child: persists one record after the other and reports each number once the store has confirmed
 *        it. */
static _Noreturn void persist_until_killed(int report)
{
    store_driver_init_loop(&backend.driver);
    sqlite_file_pool(&file, &backend.driver);
    open_store();
    for (uint32_t i = 0;; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "e%u", i);
        struct gb_outbox_record r = record(name);
        if (outbox_persist(&backend, &r, 1, NULL) != GB_OK) _exit(1);
        if (write(report, &i, sizeof i) != (ssize_t)sizeof i) _exit(1);
        outbox_records_free();
    }
}

static void check_05_31_kill_after_persist(void **state)
{
    (void)state;
    for (uint32_t round = 0; round < 3; round++) {
        int report[2];
        assert_int_equal(pipe(report), 0);
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            assert_int_equal(close(report[0]), 0);
            (void)snprintf(file.path, sizeof file.path, "%s/k%u.db", file.directory, round);
            persist_until_killed(report[1]);
        }
        assert_int_equal(close(report[1]), 0);
        uint32_t confirmed = 0;
        while (confirmed < 20 + round * 7)
            assert_int_equal(read(report[0], &confirmed, sizeof confirmed), sizeof confirmed);
        assert_int_equal(kill(child, SIGKILL), 0);
        int status = 0;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status));
        uint32_t last = confirmed;
        while (read(report[0], &last, sizeof last) == (ssize_t)sizeof last) confirmed = last;
        assert_int_equal(close(report[0]), 0);
        (void)snprintf(file.path, sizeof file.path, "%s/k%u.db", file.directory, round);
        open_store(); /* the lock died with its process */
        uint64_t pending = outbox_stats(&backend, S1).pending;
        assert_true(pending >= confirmed + 1 && pending <= confirmed + 2);
        struct gb_outbox_batch *batch = outbox_claim(&backend, S1, "o", 1, 1000, NULL);
        for (uint32_t i = 0; i <= confirmed; i++) {
            char name[16];
            (void)snprintf(name, sizeof name, "e%u", i);
            assert_string_equal(outbox_envelope_id(&batch->records[i]), name);
        }
        gb_outbox_batch_free(batch);
        close_store();
    }
}

#define CHECK(name) cmocka_unit_test_setup_teardown(name, init, deinit)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK(check_05_31_kill_after_persist), /* first: it forks */
        CHECK(another_process_is_refused),
        CHECK(no_other_name_and_no_deleted_lock_lets_a_process_in),
        CHECK(check_05_31_settings),
        CHECK(what_is_no_database_is_left_alone),
        CHECK(paths_that_cannot_be),
        CHECK(memory_database_for_tests),
        CHECK(deleted_file_takes_nothing_and_gives_what_it_has),
        CHECK(roles_share_one_database),
        CHECK(deadline_and_cancel_while_a_transaction_hangs),
        CHECK(lock_past_the_timeout_is_unavailable),
        CHECK(refusals_share_a_transaction_with_successes),
        CHECK(full_disk_recovers_without_restart),
        CHECK(a_part_goes_in_where_all_do_not_fit),
    };
    return cmocka_run_group_tests_name("SQLite faults", tests, NULL, NULL);
}
