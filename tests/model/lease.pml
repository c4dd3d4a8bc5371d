/* The lease protocol on one shared row (specification 06 §5 to §7.4), searched by check.py; README.md says what is left
 * out and what each variant showed.
 *
 * Time is discrete. TTL is the row's duration in ticks; ages, elapsed times and the time since a call began stop counting
 * at TTL, because nothing asks for more. Wall clocks do not occur: `renewed_at` and `expires_at` are one value, the
 * tuple, that is only compared for equality, as are versions and generations. Such values come from no bounded counter:
 * a new one is NEW, and after each step all are renumbered in the order in which they occur (`renumber`), which cannot
 * be told from ever larger numbers. Of a version it is only kept whether it is the row's. Thus the number of terms,
 * renewals, polls and crashes is not bounded.
 *
 * Bounds: N instances, TTL ticks, and one request at a time that its sender has given up, or that was sent twice, and
 * that still reaches the store (`late`). A request whose sender still waits may take for ever as well.
 *
 * Options (-D): N, TTL; READ_AT_ONCE, ANSWER_AT_ONCE: no time passes between a read and its answer, a write and its
 * answer; NO_REPEAT: no renewal is sent twice; AUTHORITY: only the goal is asserted, not what leads to it; FENCE: with
 * the outbox's fence; LIVE: a dead owner is replaced (below); NO_PRUNE: nothing is forgotten early; TRACE: print each
 * state; WEAK_<NAME>: without that rule. */
#ifndef N
#define N 2
#endif
#ifndef TTL
#define TTL 2
#endif
#ifdef LIVE
#ifndef BOUND
#define BOUND (TTL + 2 * MAX_POLL + CALLS * CALL) /* specification 06 §9.1 */
#endif
#endif
#define NEW 15    /* a value that occurs nowhere else */
#define NOT 255   /* no baseline */
#define BACK 254  /* the observer's clock reads less than at its baseline */
#define FORMER 9 /* the token of a process that has ended */

/* Requests that change the row. GONE: one whose condition can never hold any more. */
#define CREATE 1
#define EVID 2
#define TAKE 3
#define RENEW 4
#define RELEASE 5
#define GONE 6

/* What an instance waits for: nothing; the answer of its read; the store; the store's answer. */
#define IDLE 0
#define READ 1
#define SENT 2
#define DONE 3

typedef Req {
    byte kind, by;         /* the sender's token */
    byte own;              /* as read: 0 released */
    byte tup, fp, gen, el; /* as read: the tuple; the evidence, gen 0: none */
    byte nel, ngen;        /* EVID: what it writes */
    byte wtup;             /* RENEW: the tuple that it writes */
    bit cur;               /* the version as read, or that of the token, is still the row's */
    bit free;              /* TAKE: needs no observation */
};
typedef Inst {
    byte pc, left; /* ticks to the local deadline; authority while > 0 */
    byte pre;      /* ticks since the call began */
    byte b;        /* ticks since the baseline by the observer's clock */
    byte btup, bgen, bel;
    bit ok; /* DONE: applied */
    bit cur; /* has a token whose version is the row's */
    Req q;
#ifdef FENCE
    byte claim; /* of outbox records: 1 with the version that the fence has, 2 with an older one */
#endif
};
#ifdef FENCE
bit fenced; /* the outbox's fence has the row's version; it rises with a claim, not with a takeover */
#endif
Inst p[N];
Req late;
byte own, tup, fp, gen, el; /* the row; tup 0: absent */
byte age;                   /* since the tuple changed */
byte map[16], n, k; /* of `renumber`; zero between steps */

inline copy(to, from) {
    to.kind = from.kind; to.by = from.by; to.own = from.own; to.tup = from.tup; to.fp = from.fp; to.gen = from.gen;
    to.el = from.el; to.nel = from.nel; to.ngen = from.ngen; to.wtup = from.wtup; to.cur = from.cur; to.free = from.free
}
inline clear(r) {
    r.kind = 0; r.by = 0; r.own = 0; r.tup = 0; r.fp = 0; r.gen = 0; r.el = 0; r.nel = 0; r.ngen = 0; r.wtup = 0;
    r.cur = 0; r.free = 0
}
inline no_base(i) { p[i].b = NOT; p[i].btup = 0; p[i].bgen = 0; p[i].bel = 0 }
inline done(i) { p[i].pc = IDLE; p[i].pre = 0; p[i].ok = 0; clear(p[i].q) }

#define IF(c, s) if :: c -> s :: else fi
#if N > 2
#define EACH(f) f(0); f(1); f(2)
#define HELD (p[0].left + p[1].left + p[2].left)
#else
#define EACH(f) f(0); f(1)
#define HELD (p[0].left + p[1].left)
#endif
#define ME(i) (i + 1)
#define HOLDS(i) (p[i].left > 0)
#ifdef AUTHORITY
#define CLAIM(x) skip
#else
#define CLAIM(x) assert(x)
#endif
#include "rules.pml"

/* --- what can no longer happen is forgotten, and values are renumbered --- */

inline use(x) {
    if
    :: x == 0
    :: x != 0 && map[x] == 0 -> n++; map[x] = n; x = n
    :: else -> x = map[x]
    fi
}
inline fresh_map() { n = 0; k = 0; do :: k < 16 -> map[k] = 0; k++ :: else -> break od; k = 0 }
/* A tuple returns only by a renewal that was not applied yet, or was sent twice. */
inline mark(r) { if :: r.kind == RENEW && r.cur && own == r.by -> map[r.wtup] = 1 :: else fi }
inline prune(i) {
    if
    :: p[i].pc == SENT && HOPELESS(p[i].q) -> if
        :: p[i].q.kind == RENEW -> clear(p[i].q); p[i].q.kind = RENEW
        :: else -> clear(p[i].q); p[i].q.kind = GONE; p[i].pre = 0
        fi
    :: p[i].pc == DONE && p[i].q.kind == RENEW -> clear(p[i].q); p[i].q.kind = RENEW
    :: p[i].pc == DONE && p[i].q.kind != RENEW && !p[i].ok -> clear(p[i].q); p[i].q.kind = GONE; p[i].pre = 0
    :: p[i].pc == DONE && p[i].q.kind == TAKE && p[i].ok ->
        k = p[i].q.cur; clear(p[i].q); p[i].q.kind = TAKE; p[i].q.cur = k; k = 0
    :: else
    fi;
    IF((p[i].b != NOT && (OLD_BASE_TUPLE(i) || OLD_BASE_EVID(i))), no_base(i))
}
inline mark_q(i) { mark(p[i].q) }
inline use_tup(i) { use(p[i].q.wtup); use(p[i].q.tup); use(p[i].q.fp); use(p[i].btup) }
inline use_gen(i) { use(p[i].q.gen); use(p[i].q.ngen); use(p[i].bgen) }
#ifdef TRACE
#define SHOW(r) r.kind, r.by, r.tup, r.fp, r.gen, r.el, r.nel, r.ngen, r.wtup, r.cur
inline show_one(i) {
    printf("  | p%d pc=%d left=%d pre=%d base=%d(tup %d gen %d el %d) ", i, p[i].pc, p[i].left, p[i].pre, p[i].b,
        p[i].btup, p[i].bgen, p[i].bel);
    printf("q=%d(by %d tup %d fp %d gen %d el %d -> %d/%d w %d cur %d)\n", SHOW(p[i].q))
}
inline show_all() {
    printf("  | row own=%d tup=%d fp=%d gen=%d el=%d age=%d ", own, tup, fp, gen, el, age);
    printf("late=%d(by %d tup %d fp %d gen %d el %d -> %d/%d w %d cur %d)\n", SHOW(late));
    EACH(show_one)
}
#else
inline show_all() { skip }
#endif
inline renumber() {
    fresh_map(); map[tup] = 1; EACH(mark_q); mark(late); map[0] = 0;
    EACH(prune); IF((late.kind != 0 && HOPELESS(late)), clear(late));
    fresh_map(); use(tup); use(fp); EACH(use_tup); use(late.wtup); use(late.tup); use(late.fp);
#ifndef WEAK_GENERATION
    fresh_map(); use(gen); EACH(use_gen); use(late.gen); use(late.ngen);
#endif
    fresh_map(); n = 0;
    show_all()
}

/* --- the store --- */

inline reset() { el = 0; gen = 0; fp = 0 }
inline old_token(i) { p[i].cur = 0; p[i].q.cur = 0 }
/* The version rises: no token and nothing read is of the row's version any more. */
inline raise_version() {
#ifndef WEAK_SAME_VERSION
#ifdef FENCE
    fenced = 0;
#endif
    EACH(old_token); late.cur = 0
#else
    skip
#endif
}
inline apply(r, applied) {
    applied = 0;
    if
    :: r.kind == CREATE && ABSENT ->
        assert(tup == 0); /* else the version would begin again */
        tup = NEW; own = r.by; age = 0; reset(); r.cur = 1; applied = 1
    :: r.kind == EVID && EVID_TUPLE(r) && EVID_EVID(r) ->
        el = r.nel; gen = r.ngen; fp = r.tup; applied = 1;
        CLAIM(fp != tup || el <= age) /* stored elapsed <= real time */
    :: r.kind == TAKE && TAKE_TUPLE(r) && TAKE_EVID(r) ->
        assert(r.cur);                    /* the new version is above the row's */
        CLAIM(r.free || age >= TTL);      /* the tuple was unchanged for its duration */
        raise_version(); r.cur = 1; tup = NEW; own = r.by; age = 0; RESET_TAKE; applied = 1
    :: r.kind == RENEW && MINE(r) ->
        assert(own == r.by && r.cur);     /* no stale token renews */
        IF((tup != r.wtup), tup = r.wtup; age = 0); RESET_RENEW; applied = 1
    :: r.kind == RELEASE && MINE(r) ->
        assert(own == r.by && r.cur);
        tup = NEW; own = 0; age = 0; RESET_RELEASE; applied = 1
    :: else
    fi
}

/* --- the instance --- */

inline read(i, began) {
    p[i].pc = READ; p[i].pre = began; p[i].q.by = ME(i);
    p[i].q.own = (own == 0 || own == ME(i) -> own : FORMER); p[i].q.tup = tup; p[i].q.cur = 1;
    p[i].q.fp = fp; p[i].q.gen = gen; p[i].q.el = el
}
inline sent(i, what) { p[i].q.kind = what; p[i].q.own = 0; p[i].pc = SENT }
inline observe(i, since) {
    sent(i, EVID);
    p[i].q.nel = INHERITED(i) + since;
    IF((p[i].q.nel > TTL), p[i].q.nel = TTL);
    p[i].q.ngen = NEXT_GEN(p[i].q.gen)
}
inline rebase(i) {
    p[i].btup = p[i].q.tup; p[i].bgen = p[i].q.gen; p[i].bel = p[i].q.el;
#ifdef WEAK_BASELINE_EARLY
    p[i].b = p[i].pre;
#else
    p[i].b = 0;
#endif
    done(i)
}
/* Steps 3 to 9 on the row that was read. */
inline decide(i) {
    if
    :: p[i].q.tup == 0 -> sent(i, CREATE)
    :: p[i].q.tup != 0 && (RELEASED_ROW(i) || OWN_ROW(i)) -> sent(i, TAKE); p[i].q.free = 1
    :: else -> if
    :: !ABOUT(i) -> p[i].q.nel = 0; sent(i, EVID); p[i].q.ngen = FIRST_GEN(p[i].q.gen)
    :: ABOUT(i) && CONFIRMED_ROW(i) -> sent(i, TAKE)
    :: else -> if
#ifdef WEAK_NO_BASELINE
    :: !MATCHES(i) -> observe(i, 1)
#else
    :: !MATCHES(i) -> rebase(i)
#endif
#ifdef WEAK_NEGATIVE
    :: MATCHES(i) && p[i].b == BACK -> observe(i, TTL)
#else
    :: MATCHES(i) && p[i].b == BACK -> rebase(i)
#endif
    :: MATCHES(i) && p[i].b == 0 -> done(i)
    :: else -> observe(i, p[i].b)
    fi fi fi
}
inline own_it(i) {
#ifdef WEAK_DEADLINE
    p[i].left = TTL;
#else
    p[i].left = TTL - p[i].pre;
#endif
    IF((p[i].left == 0), p[i].cur = 0)
}
inline lost(i) {
#ifndef WEAK_KEEP_BASELINE
    no_base(i);
#endif
    done(i)
}
inline unanswered(i) {
#ifdef WEAK_RENEW_ASSUMED
    IF((p[i].q.kind == RENEW && HOLDS(i)), own_it(i));
#endif
    if
    :: p[i].q.kind == RENEW -> done(i)
    :: else -> lost(i)
    fi
}
inline answer(i) {
    if
    :: p[i].q.kind == EVID && p[i].ok && AT_ONCE && ENOUGH(p[i].q.nel) -> /* step 10 */
        p[i].ok = 0; p[i].q.fp = p[i].q.tup; p[i].q.gen = p[i].q.ngen; p[i].q.el = p[i].q.nel;
        p[i].q.nel = 0; p[i].q.ngen = 0; no_base(i); sent(i, TAKE)
    :: p[i].q.kind == EVID && p[i].ok && !(AT_ONCE && ENOUGH(p[i].q.nel)) ->
        p[i].btup = p[i].q.tup; p[i].bgen = p[i].q.ngen; p[i].bel = p[i].q.nel;
#if defined(WEAK_LATENCY) || defined(WEAK_LATENCY_READ)
        p[i].b = p[i].pre;
#else
        p[i].b = 0;
#endif
        done(i)
    :: (p[i].q.kind == TAKE || p[i].q.kind == CREATE) && p[i].ok ->
        p[i].cur = p[i].q.cur; no_base(i); own_it(i); done(i);
        assert(p[i].left == 0 || HELD == p[i].left) /* one holds authority at a time */
    :: p[i].q.kind == RENEW && p[i].ok ->
        IF((p[i].left > 0), own_it(i)); done(i)
    :: p[i].q.kind == RENEW && !p[i].ok ->
#ifndef WEAK_KEEP_AFTER_LOSS
        p[i].left = 0; p[i].cur = 0;
#endif
        done(i)
    :: else -> lost(i)
    fi
}
#ifdef FENCE
inline fence_off(i) { IF((p[i].claim == 1), p[i].claim = 2) }
inline complete(i) {
    IF((FENCED(i)), assert(p[i].claim == 1)); /* no stale token completes */
    p[i].claim = 0
}
#endif
inline request(i, what) { p[i].q.by = ME(i); p[i].q.cur = p[i].cur; p[i].pre = 0; sent(i, what) }
inline crash(i) {
    if
    :: p[i].pc == SENT && late.kind == 0 -> copy(late, p[i].q)
    :: else
    fi;
    IF((late.by == ME(i)), late.by = FORMER);
    IF((own == ME(i)), own = FORMER);
    p[i].left = 0; p[i].cur = 0; no_base(i); done(i)
}
/* --- time --- */

#define UP(x) IF((x < TTL), x++)
inline pass(i) {
#if defined(WEAK_NO_CHECK)
    IF((p[i].left > 1), p[i].left--); /* a resumed process goes on as before */
#elif defined(WEAK_SUSPEND)
    IF((p[i].left > 0 && i != asleep), p[i].left--);
#else
    IF((p[i].left > 0), p[i].left--);
#endif
    IF((p[i].left == 0), p[i].cur = 0);
    IF((p[i].pc != IDLE && p[i].q.kind != GONE), UP(p[i].pre));
    IF((i != asleep), UP(p[i].b))
}
inline tick(who) { asleep = who; IF((tup != 0 && own != 0 && age < TTL), age++); EACH(pass); asleep = 0; renumber() }

#ifdef LIVE
#include "live.pml"
#else

proctype instance(byte i) {
    bit ignored;
end:
    do
#ifdef READ_AT_ONCE
    :: d_step { p[i].pc == IDLE && !HOLDS(i) -> read(i, 0); decide(i); renumber() }
#else
    :: d_step { p[i].pc == IDLE && !HOLDS(i) -> read(i, 0); renumber() }
#if defined(WEAK_BASELINE_EARLY) || defined(WEAK_LATENCY)
    :: d_step { p[i].pc == IDLE && !HOLDS(i) -> read(i, 1); renumber() } /* asked for one tick ago */
#endif
    :: d_step { p[i].pc == READ -> decide(i); renumber() }
    :: d_step { p[i].pc == READ -> lost(i); renumber() }
#endif
#ifdef ANSWER_AT_ONCE
    :: d_step { p[i].pc == SENT -> apply(p[i].q, p[i].ok); answer(i); renumber() }
#else
    :: d_step { p[i].pc == SENT -> apply(p[i].q, p[i].ok); p[i].pc = DONE; renumber() }
    :: d_step { p[i].pc == DONE -> answer(i); renumber() }
    :: d_step { p[i].pc == DONE -> unanswered(i); renumber() }
#endif
#ifdef FENCE
    :: d_step { HOLDS(i) && p[i].cur -> IF((!fenced), EACH(fence_off)); fenced = 1; p[i].claim = 1; renumber() }
    :: d_step { p[i].claim != 0 -> complete(i); renumber() } /* at any time, also when the process has ended */
#endif
#ifndef NO_BACK
    :: d_step { p[i].b != NOT && p[i].b != BACK && p[i].b != 0 -> p[i].b = BACK }
#endif
    /* No answer in time: the request was applied, got lost, or reaches the store later. */
    :: d_step { p[i].pc == SENT -> unanswered(i); renumber() }
    :: d_step { p[i].pc == SENT && late.kind == 0 -> copy(late, p[i].q); unanswered(i); renumber() }
#ifndef NO_REPEAT
    /* Sent again inside the call, and the first one is not lost. */
    :: d_step { p[i].pc == SENT && late.kind == 0 && p[i].q.kind == RENEW -> copy(late, p[i].q); renumber() }
#endif
    :: d_step { p[i].pc == IDLE && HOLDS(i) -> request(i, RENEW); p[i].q.wtup = NEW; renumber() }
    :: d_step { p[i].pc == IDLE && HOLDS(i) -> request(i, RELEASE);
#ifndef WEAK_RELEASE_EARLY
        p[i].left = 0; p[i].cur = 0;
#endif
        renumber() }
    :: d_step { HOLDS(i) -> p[i].left = 0; p[i].cur = 0; renumber() } /* steps down and keeps the row */
    :: d_step { crash(i); renumber() }
    od
}

proctype network() {
    bit ignored;
end:
    do
    :: d_step { late.kind != 0 -> apply(late, ignored); ignored = 0; clear(late); renumber() }
    :: d_step { late.kind != 0 -> clear(late); renumber() }
    od
}

proctype clock() {
    byte asleep; /* whose host was suspended: its observations' clock stands still, that of its deadline does not */
    do
    :: d_step { true -> tick(N) }
    :: d_step { p[0].b != NOT || p[0].left != 0 -> tick(0) }
    :: d_step { p[1].b != NOT || p[1].left != 0 -> tick(1) }
#if N > 2
    :: d_step { p[2].b != NOT || p[2].left != 0 -> tick(2) }
#endif
    od
}
init {
    d_step { EACH(no_base) };
    atomic { run instance(0); run instance(1);
#if N > 2
        run instance(2);
#endif
        run clock(); run network() }
}
#endif
