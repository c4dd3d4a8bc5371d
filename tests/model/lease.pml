/* The lease protocol on a shared row, for exhaustive search. README.md says what is left out.
 * Bounds: TTL 2 ticks; ages saturate at 4; VMAX terms, RMAX renewals per term, CRASH crashes. A late request
 * (given up by its caller, applied later) stays in its instance's one slot `g`. Wall clocks do not occur. */
#ifndef N
#define N 2
#endif
#ifndef VMAX
#define VMAX 2
#endif
#ifndef RMAX
#define RMAX 1
#endif
#ifndef CRASH
#define CRASH 0
#endif
#define TTL 2
#define TOP 4
#define NONE 15
#define INC(x) x = (x < TOP -> x + 1 : x)
#define FP(v, r) (v * 4 + r + 1)
/* Requests. */
#define EVID 1
#define TAKE 2
#define RENEW 3
#define RELEASE 4
/* Instance: idle, read sent, read applied, write sent, write applied. */
#define IDLE 0
#define RSENT 1
#define RDONE 2
#define WSENT 3
#define WDONE 4

typedef Req { byte kind, by, own, ver, ren, el, gen, fp, nel, ngen; bit free };
typedef Inst {
    byte pc, me, left, tok, pre, b, bver, bren, bel, bgen, bfp;
    bit up, asleep, ok;
    Req q, g;
};
Inst p[N];
byte own = 1, ver = 1, ren, el, gen, fp, age, crashes;

inline copy(to, from) {
    to.kind = from.kind; to.by = from.by; to.own = from.own; to.ver = from.ver; to.ren = from.ren; to.el = from.el;
    to.gen = from.gen; to.fp = from.fp; to.nel = from.nel; to.ngen = from.ngen; to.free = from.free
}
inline clear(r) {
    r.kind = 0; r.by = 0; r.own = 0; r.ver = 0; r.ren = 0; r.el = 0; r.gen = 0; r.fp = 0; r.nel = 0; r.ngen = 0; r.free = 0
}
inline reset_evidence() {
#ifndef WEAK_NO_RESET
    el = 0; gen = 0; fp = 0
#else
    skip
#endif
}
#ifdef WEAK_NO_TUPLE
#define TUPLE(r) true
#else
#define TUPLE(r) (r.own == own && r.ver == ver && r.ren == ren)
#endif
#ifdef WEAK_NO_EVIDENCE
#define SAME(r) TUPLE(r)
#else
#define SAME(r) (TUPLE(r) && r.el == el && r.gen == gen && r.fp == fp)
#endif
#ifdef WEAK_NO_VERSION
#define MINE(r) (own != 0)
#else
#define MINE(r) (own == r.own && ver == r.ver)
#endif
inline apply(i, r, res) {
    res = 0;
    if
    :: r.kind == EVID && SAME(r) ->
        el = r.nel; gen = r.ngen; fp = FP(r.ver, r.ren); res = 1;
        assert(fp != FP(ver, ren) || el <= age || age == TOP)
    :: r.kind == TAKE && SAME(r) ->
        assert(r.free || age >= TTL);
        assert(r.ver + 1 > ver);
        own = r.by; ver = r.ver + 1; ren = 0; age = 0; reset_evidence(); res = 1
    :: r.kind == RENEW && MINE(r) && ren < RMAX ->
        assert(r.ver == ver && own == r.own);
        ren++; age = 0; reset_evidence(); res = 1
    :: r.kind == RELEASE && MINE(r) ->
        assert(r.ver == ver && own == r.own);
        own = 0; age = 0; reset_evidence(); res = 1
    :: else
    fi
}
inline no_base(i) { p[i].b = NONE; p[i].bver = 0; p[i].bren = 0; p[i].bel = 0; p[i].bgen = 0; p[i].bfp = 0 }
inline base(i, nel_, ngen_, nfp_) {
    p[i].bver = p[i].q.ver; p[i].bren = p[i].q.ren; p[i].bel = nel_; p[i].bgen = ngen_; p[i].bfp = nfp_
}
inline done(i) { p[i].pc = IDLE; clear(p[i].q); p[i].pre = 0; p[i].ok = 0 }
inline decide(i) { /* steps 3 to 9, on the answered read */
    if
    :: (p[i].q.own == 0 || p[i].q.own == p[i].me) ->
        p[i].q.free = 1; p[i].q.kind = TAKE; p[i].pc = WSENT
#ifndef WEAK_NO_FP
    :: else -> if
    :: (p[i].q.gen == 0 || p[i].q.fp != FP(p[i].q.ver, p[i].q.ren)) ->
#else
    :: else -> if
    :: p[i].q.gen == 0 ->
#endif
        p[i].q.kind = EVID; p[i].q.nel = 0; p[i].q.ngen = p[i].q.gen + 1; p[i].pc = WSENT; p[i].pre = 0
    :: else -> if
    :: p[i].q.el >= TTL -> p[i].q.kind = TAKE; p[i].pc = WSENT
#ifdef WEAK_NO_BASELINE_MATCH
    :: else -> if
    :: p[i].b == NONE ->
#else
    :: else -> if
    :: (p[i].b == NONE || p[i].bver != p[i].q.ver || p[i].bren != p[i].q.ren || p[i].bel != p[i].q.el || p[i].bgen != p[i].q.gen || p[i].bfp != p[i].q.fp) ->
#endif
        base(i, p[i].q.el, p[i].q.gen, p[i].q.fp);
#ifdef WEAK_BASELINE_EARLY
        p[i].b = p[i].pre;
#else
        p[i].b = 0;
#endif
        done(i)
    :: else -> if
    :: p[i].b == 0 -> done(i)
    :: else ->
        p[i].q.kind = EVID; p[i].q.nel = (p[i].q.el + p[i].b < TOP -> p[i].q.el + p[i].b : TOP);
        p[i].q.ngen = p[i].q.gen + 1; p[i].pc = WSENT; p[i].pre = 0
    fi fi fi fi fi
}
inline answer(i) {
    if
    :: p[i].q.kind == EVID && p[i].ok && p[i].q.nel >= TTL ->
        p[i].q.el = p[i].q.nel; p[i].q.gen = p[i].q.ngen; p[i].q.fp = FP(p[i].q.ver, p[i].q.ren);
        p[i].q.kind = TAKE; p[i].pc = WSENT; p[i].pre = 0; p[i].ok = 0; no_base(i)
    :: p[i].q.kind == EVID && p[i].ok && p[i].q.nel < TTL ->
        base(i, p[i].q.nel, p[i].q.ngen, FP(p[i].q.ver, p[i].q.ren));
#ifdef WEAK_LATENCY
        p[i].b = p[i].pre;
#else
        p[i].b = 0;
#endif
        done(i)
    :: (p[i].q.kind == TAKE || p[i].q.kind == RENEW) && p[i].ok ->
        p[i].tok = (p[i].q.kind == TAKE -> p[i].q.ver + 1 : p[i].q.ver);
#ifdef WEAK_DEADLINE
        p[i].left = TTL;
#else
        p[i].left = (p[i].pre < TTL -> TTL - p[i].pre : 0);
#endif
        no_base(i); done(i)
    :: else -> no_base(i); done(i)
    fi
}
inline request(i, k) {
    p[i].q.kind = k; p[i].q.own = p[i].me; p[i].q.ver = p[i].tok; p[i].pc = WSENT; p[i].pre = 0
}
proctype instance(byte i) {
    bit late;
    do
    :: d_step { p[i].up && !p[i].asleep && p[i].pc == IDLE && p[i].left == 0 && ver < VMAX ->
        p[i].pc = RSENT; p[i].pre = 0 }
    :: d_step { p[i].pc == RSENT && p[i].up -> p[i].q.by = p[i].me; p[i].q.own = own; p[i].q.ver = ver; p[i].q.ren = ren; p[i].q.el = el;
        p[i].q.gen = gen; p[i].q.fp = fp; p[i].pc = RDONE }
    :: d_step { p[i].pc == RDONE && p[i].up && !p[i].asleep -> decide(i) }
    :: d_step { p[i].pc == WSENT -> apply(i, p[i].q, p[i].ok); p[i].pc = WDONE }
    :: d_step { p[i].pc == WDONE && p[i].up && !p[i].asleep -> answer(i) }
    :: d_step { p[i].pc == WSENT && p[i].g.kind == 0 -> copy(p[i].g, p[i].q); no_base(i); done(i) }
    :: d_step { p[i].pc == WDONE -> no_base(i); done(i) }
    :: d_step { p[i].g.kind != 0 -> apply(i, p[i].g, late); late = 0; clear(p[i].g) }
    :: d_step { p[i].g.kind != 0 -> clear(p[i].g) }
    :: d_step { p[i].up && !p[i].asleep && p[i].pc == IDLE && p[i].left > 0 -> request(i, RENEW) }
    :: d_step { p[i].up && !p[i].asleep && p[i].pc == IDLE && p[i].left > 0 ->
#ifndef WEAK_RELEASE_EARLY
        p[i].left = 0;
#endif
        request(i, RELEASE) }
    :: d_step { p[i].up && crashes < CRASH && p[i].pc != WSENT -> crashes++; p[i].left = 0; p[i].tok = 0;
        p[i].me = p[i].me + N; no_base(i); done(i) }
    :: d_step { p[i].up && !p[i].asleep -> p[i].asleep = 1 }
    :: d_step { p[i].asleep -> p[i].asleep = 0 }
    od
}
inline tick_one(i) {
#ifdef WEAK_RESUME
    if :: p[i].left > 0 && !p[i].asleep -> p[i].left-- :: else fi;
#else
    if :: p[i].left > 0 -> p[i].left-- :: else fi;
#endif
    if :: p[i].pc != IDLE -> INC(p[i].pre) :: else fi;
    if :: p[i].b != NONE && !p[i].asleep -> INC(p[i].b) :: else fi
}
proctype clock() {
    byte k;
    do :: d_step { true -> INC(age); k = 0; do :: k < N -> tick_one(k); k++ :: else -> break od; k = 0 } od
}
#if N > 2
#define HOLDERS ((p[0].left > 0 -> 1 : 0) + (p[1].left > 0 -> 1 : 0) + (p[2].left > 0 -> 1 : 0))
#else
#define HOLDERS ((p[0].left > 0 -> 1 : 0) + (p[1].left > 0 -> 1 : 0))
#endif
proctype watch() {
    d_step { HOLDERS > 1 -> assert(false) }
}
init {
    byte k;
    atomic {
        do :: k < N -> p[k].up = 1; p[k].me = k + 1; p[k].b = NONE; k++ :: else -> break od;
        p[0].left = TTL; p[0].tok = 1; k = 0;
        do :: k < N -> run instance(k); k++ :: else -> break od;
        run clock(); run watch()
    }
}
