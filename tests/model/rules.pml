/* The rules of the protocol as lease.pml uses them, each with the variant WEAK_<NAME> that does without it. */

/* --- acquire: steps 3 to 10 --- */

/* `gen` names one series of evidence: within it elapsed rises with each generation, so that both together say the same
 * as a generation that rises. */
#ifdef WEAK_GENERATION
#define FIRST_GEN(g) (g + 1)
#define NEXT_GEN(g) (g + 1)
#else
#define FIRST_GEN(g) NEW
#define NEXT_GEN(g) (g)
#endif
#ifdef WEAK_NO_FP
#define ABOUT(i) (p[i].q.gen != 0)
#else
#define ABOUT(i) (p[i].q.gen != 0 && p[i].q.fp == p[i].q.tup)
#endif
#ifdef WEAK_REQUIRED
#define ENOUGH(x) (x >= TTL - 1)
#else
#define ENOUGH(x) (x >= TTL)
#endif
#ifdef WEAK_OBSERVE_RELEASED
#define RELEASED_ROW(i) false
#else
#define RELEASED_ROW(i) (p[i].q.own == 0)
#endif
#ifdef WEAK_OBSERVE_OWN
#define OWN_ROW(i) false
#else
#define OWN_ROW(i) (p[i].q.own == ME(i))
#endif
#ifdef WEAK_CONFIRM_AGAIN
#define CONFIRMED_ROW(i) false
#else
#define CONFIRMED_ROW(i) ENOUGH(p[i].q.el)
#endif
#ifdef WEAK_NO_INHERIT
#define INHERITED(i) 0
#else
#define INHERITED(i) p[i].q.el
#endif
#ifdef WEAK_ANOTHER_POLL
#define AT_ONCE false
#else
#define AT_ONCE true
#endif
#ifdef WEAK_MATCH_TUPLE
#define MATCH_TUPLE(i) true
#else
#define MATCH_TUPLE(i) (p[i].btup == p[i].q.tup)
#endif
#ifdef WEAK_MATCH_EVID
#define MATCHES(i) (p[i].b != NOT && MATCH_TUPLE(i))
#else
#define MATCHES(i) (p[i].b != NOT && MATCH_TUPLE(i) && p[i].bgen == p[i].q.gen && p[i].bel == p[i].q.el)
#endif

/* --- conditions of the store --- */

#ifdef WEAK_EVID_TUPLE
#define EVID_TUPLE(r) true
#else
#define EVID_TUPLE(r) (r.tup == tup)
#endif
#ifdef WEAK_TAKE_TUPLE
#define TAKE_TUPLE(r) true
#else
#define TAKE_TUPLE(r) (r.tup == tup)
#endif
#define SAME_EVID(r) (r.gen == gen && r.el == el && r.fp == fp)
#ifdef WEAK_EVID_EVID
#define EVID_EVID(r) true
#else
#define EVID_EVID(r) SAME_EVID(r)
#endif
#ifdef WEAK_TAKE_EVID
#define TAKE_EVID(r) true
#else
#define TAKE_EVID(r) SAME_EVID(r)
#endif
#ifdef WEAK_VERSION
#define MINE(r) (own == r.by)
#else
#ifdef WEAK_OWNER
#define MINE(r) (r.cur)
#else
#define MINE(r) (own == r.by && r.cur)
#endif
#endif
#ifdef WEAK_CREATE
#define ABSENT true
#else
#define ABSENT (tup == 0)
#endif
#ifdef WEAK_FENCE
#define FENCED(i) true
#else
#define FENCED(i) (p[i].claim == 1)
#endif

/* --- what a change of the row does to its evidence --- */

#if defined(WEAK_RESET) || defined(WEAK_RESET_RENEW)
#define RESET_RENEW skip
#else
#define RESET_RENEW reset()
#endif
#if defined(WEAK_RESET) || defined(WEAK_RESET_TAKE)
#define RESET_TAKE skip
#else
#define RESET_TAKE reset()
#endif
#if defined(WEAK_RESET) || defined(WEAK_RESET_RELEASE)
#define RESET_RELEASE skip
#else
#define RESET_RELEASE reset()
#endif

/* --- what is forgotten early --- */

/* What of a request or baseline can never fit the row again; of what a variant does not compare, nothing is said. */
#ifdef WEAK_GENERATION
#define OLD_EVID(x) false
#else
#define OLD_EVID(x) (x != 0 && x != gen)
#endif
#ifdef WEAK_EVID_TUPLE
#define EVID_HOPELESS(r) OLD_EVID(r.gen)
#elif defined(WEAK_EVID_EVID)
#define EVID_HOPELESS(r) (map[r.tup] == 0)
#else
#define EVID_HOPELESS(r) (map[r.tup] == 0 || OLD_EVID(r.gen))
#endif
#ifdef WEAK_TAKE_TUPLE
#define TAKE_HOPELESS(r) OLD_EVID(r.gen)
#elif defined(WEAK_TAKE_EVID)
#define TAKE_HOPELESS(r) (map[r.tup] == 0)
#else
#define TAKE_HOPELESS(r) (map[r.tup] == 0 || OLD_EVID(r.gen))
#endif
#if defined(WEAK_VERSION) || defined(WEAK_OWNER) || defined(WEAK_CREATE) || defined(NO_PRUNE)
#define HOPELESS(r) false
#else
#define HOPELESS(r) (r.kind == EVID && EVID_HOPELESS(r) || r.kind == TAKE && TAKE_HOPELESS(r) || \
    r.kind == CREATE && tup != 0 || (r.kind == RENEW || r.kind == RELEASE) && (!r.cur || own != r.by))
#endif
#if defined(WEAK_MATCH_TUPLE) || defined(NO_PRUNE)
#define OLD_BASE_TUPLE(i) false
#else
#define OLD_BASE_TUPLE(i) (map[p[i].btup] == 0)
#endif
#if defined(WEAK_MATCH_EVID) || defined(WEAK_GENERATION) || defined(NO_PRUNE)
#define OLD_BASE_EVID(i) false
#else
#define OLD_BASE_EVID(i) ((p[i].bgen != gen || p[i].bel != el) && \
    !(p[i].pc == READ && p[i].bgen == p[i].q.gen && p[i].bel == p[i].q.el))
#endif
