/* A dead owner is replaced in time. Nothing is lost and no call takes more than CALL ticks; the wait between two calls
 * is MIN_POLL to MAX_POLL ticks; the owner died right after a renewal. START: what the row says then. */
#ifndef MIN_POLL
#define MIN_POLL 3
#endif
#ifndef MAX_POLL
#define MAX_POLL 5
#endif
#ifndef CALL
#define CALL 0
#endif
#define CALLS (1 + (TTL + MIN_POLL - 1) / MIN_POLL)
#ifndef STANDBYS
#define STANDBYS 1
#endif
byte waited[N]; /* since the last call ended */
byte gone;      /* since the owner died */
proctype standby(byte i) {
end:
    do
    :: d_step { p[i].pc == IDLE && !HOLDS(i) && waited[i] >= MIN_POLL -> read(i, 0); renumber() }
    :: d_step { p[i].pc == READ -> decide(i); IF((p[i].pc == IDLE), waited[i] = 0); renumber() }
    :: d_step { p[i].pc == SENT -> apply(p[i].q, p[i].ok); p[i].pc = DONE; renumber() }
    :: d_step { p[i].pc == DONE -> answer(i); IF((p[i].pc == IDLE), waited[i] = 0); renumber() }
    od
}
#define TIMELY(i) (i >= STANDBYS || (p[i].pc == IDLE -> waited[i] < MAX_POLL : p[i].pre < CALL))
#if N > 2
#define ALL_TIMELY (TIMELY(0) && TIMELY(1) && TIMELY(2))
#else
#define ALL_TIMELY (TIMELY(0) && TIMELY(1))
#endif
inline wait(i) { IF((i < STANDBYS && p[i].pc == IDLE), waited[i]++) }
proctype clock() {
    byte asleep;
    do
    :: d_step { HELD == 0 && ALL_TIMELY -> EACH(wait); gone++; tick(N); assert(gone <= BOUND) }
    :: HELD > 0 -> break
    od
}
init {
    byte j;
    d_step {
        EACH(no_base); tup = 1; own = FORMER;
#ifdef RELEASED
        own = 0;
#endif
#ifdef OWN
        own = 1;
#endif
#ifdef CONFIRMED
        fp = 1; gen = 1; el = CONFIRMED; age = CONFIRMED;
#endif
    };
    do
    :: waited[0] < MAX_POLL -> waited[0]++
    :: STANDBYS > 1 && waited[1] < MAX_POLL -> waited[1]++
#if N > 2
    :: STANDBYS > 2 && waited[2] < MAX_POLL -> waited[2]++
#endif
    :: break
    od;
    atomic {
        run standby(0); if :: STANDBYS > 1 -> run standby(1) :: else fi;
#if N > 2
        run standby(2);
#endif
        run clock()
    }
}
