// SPDX-License-Identifier: Apache-2.0
// The plain lock: one server, three clients, and every order of their steps. Spin visits all states (run.sh).
//
// A step is one execution of a script, or what one client does between two requests. core/ARCHITECTURE.md names the function or
// the script of each step. There are three searches:
//
//   NET    Requests, answers and messages are late or lost, and clocks drift. A client takes each step at any time or never, so a
//          client that is stopped needs no step of its own. There are revokes and freezes.
//   LIVE   The network is good, and the timers of the clients run. A client that is not stopped takes each step in time.
//   LOSS   As LIVE, and the server loses the key of the lock, or that key and the queue.
//
// Never two jobs with the same fencing number: where the server loses nothing, these are all jobs. NET, LIVE: no job without its
// lock on the server. NET: no grant passes a freeze that waits; no hold outlives the ttl that it had when it was revoked. LIVE: a
// free lock is taken in time. LOSS: two jobs overlap for a short time only. A client that is over comes back as a new owner, so a
// run has no end.
//
// A client's clock is no variable. Over one lease it differs from the server's clock by DRIFT at most. So `left` counts the ticks
// to the last moment at which the slowest clock lets a job live. A fast clock ends the job earlier, and any job may end early.
//
// Left out are what needs a fourth client, as the waiters behind the first that watch a hand-over, and freezes in LIVE: one that is
// first in line, and stopped or killed, costs a claim more than IN_TIME allows.
//
// run.sh sets STOPS (1: processes are stopped, which LIVE and LOSS do), IN_TIME (how many ticks a lock may be free while a client
// waits that is neither dead nor stopped) and MISTAKE: 0, or one of these, which the search that is named must find.
#define no_drift 1        // NET: the holder allows for no drift
#define from_answer 2     // NET: the lease counts from the answer, not from the time when the request was sent
#define old_message 3     // NET: a job begins on the message of a hand-over, however old it is
#define no_last_resort 4  // NET: a job whose runner and guardian are stopped lives on
#define revoke_frees 5    // NET: a revoke hands the lock over at once
#define renews_revoked 6  // NET: the renew script does not look at the mark of a revoke
#define late_frees 7      // NET: an acquire request that comes late frees a revoked hold under which a job runs
#define past_freeze 8     // NET: after a hand-over that was not taken, a waiter also passes a freeze
#define never_past 9      // LIVE: a lock that is found free always goes to the first in line, who may be stopped
#define not_watched 10    // LIVE: the first in line is not told when a hand-over must be confirmed
#define not_told 11       // LOSS: a grant that finds no holder tells no earlier holder
#define counted_fence 12  // LOSS: the fencing number is a counter, which begins again after a loss of data

#define N 3        // clients
#define NONE N
#define LEASE 5    // the ttl of a holder and of a freeze, in ticks; a tick of LIVE and LOSS is 0.5 s, that of NET has no length
#define CLAIM 4    // handover_confirmation
#define DRIFT 1    // drift_allowed
#define ANSWER 2   // --server-timeout: how old the answer to a request may be
#define PERIOD 2   // renewal_period
#define SILENCE 3  // what is left of silence_memory at the end of a claim; in truth 16
#define KILL 2     // kill_after_loss
#define TOLD 2     // how long two jobs may overlap
#define NEVER 15
#define OFF 0   // not begun, over, or killed
#define LINE 1  // waits
#define JOB 2   // its job runs
#define DONE 3  // its job is dead and reaped; the release is to come

// The server.
byte holder = NONE, ttl, place[N];  // place: in the queue, by arrival; 0: not in line
bit claimed, revoked[N];            // claimed: the hold is a claim that is not confirmed yet
bit epoch, fence[N];                // max(last + 1, server time) grows over each loss of data: so the parity of losses stands for it
byte silent;                        // ticks for which was_not_taken is true
// The clients.
byte phase[N], left[N];  // left: ticks until the job must be dead
bit freeze[N];           // the client is an rlock freeze, which runs no job
byte msg[N];             // the age of the message "yours", plus 1; 0: there is none on its way
// The clients of NET.
byte io[N], age[N];  // the request of the client; the ticks since it was sent
byte late, sender;   // a request whose answer its sender no longer waits for: the phase in which it was sent
#define SENT 1
#define YES 2  // the server has granted, or renewed
// The clients of LIVE and LOSS.
bit stopped[N], fresh[N];         // SIGSTOP; has joined the queue in this tick (SUBSCRIBE_GRACE)
byte ask[N], confirm[N];          // LockCandidate::ask_at and confirmed_by, in ticks from now
bit hears[N], lost[N], slept[N];  // was told of another grant; knows of its loss; was stopped since its job began
// For the checks.
byte bound, idle[N], over[N];  // the ttl that is left since the revoke; ticks of a free lock; ticks beside a newer job
hidden byte next, each, yes, high, past, frees;  // within one step
#define alive(x) (phase[x] == LINE || fresh[x])
#define is_over(x) (phase[x] == OFF && holder != x && !place[x] && !(late && sender == x))
#define any(p) (p(0) || p(1) || p(2))
#define has_place(x) (place[x] > 0)
#define listens(x) (place[x] && phase[x] == LINE)
#define is_waiting_freeze(x) (listens(x) && freeze[x])
#define has_job(x) (phase[x] == JOB)
#define ahead(x, y) (place[x] && (!place[y] || freeze[x] > freeze[y] || (freeze[x] == freeze[y] && place[x] < place[y])))
#define rank(x) ((x != 0 && ahead(0, x)) + (x != 1 && ahead(1, x)) + (x != 2 && ahead(2, x)))
#define waits(x) (phase[x] == LINE && !stopped[x])
inline find_first() {
  next = NONE;
  for (each : 0 .. N - 1) { if :: place[each] && (next == NONE || ahead(each, next)) -> next = each :: else fi }
}
inline leave_line(x) {
  for (each : 0 .. N - 1) { if :: place[x] && place[each] > place[x] -> place[each]-- :: else fi }
  place[x] = 0
}
inline enqueue(x) {
  high = 0;
  for (each : 0 .. N - 1) { if :: place[each] > high -> high = place[each] :: else fi }
  if :: !place[x] && phase[x] == LINE -> place[x] = high + 1 :: else fi
}
inline clean(x) { if :: is_over(x) -> freeze[x] = 0; fence[x] = 0 :: else fi }
inline end_hold() { revoked[holder] = 0; next = holder; holder = NONE; ttl = 0; bound = 0; claimed = 0; clean(next) }

// What the scripts tell the waiters. In NET and LOSS each waiter may ask at any time, so it need not be told.
#ifdef LIVE
#define vanish_from_line(x) skip  // the scripts find the dead
#define may_ask(x) (waits(x) && (!ask[x] || !confirm[x] || msg[x]))
#define must_ask(x) may_ask(x)
inline announce_next(ticks) {
  find_first();
  do :: next != NONE && !alive(next) -> leave_line(next); find_first() :: else -> break od;
  if :: next != NONE && phase[next] == LINE -> confirm[next] = ticks :: else fi
}
inline have_hand_over_watched() { if :: MISTAKE != not_watched -> announce_next(CLAIM) :: else fi }
inline expire() {
  for (each : 0 .. N - 1) { if :: !claimed && listens(each) && ask[each] > rank(each) -> ask[each] = rank(each) :: else fi }
  silent = (claimed -> SILENCE : silent)
}
// A full lease is long beside a claim, so until its end a waiter looks by itself as good as never. rank: step_back for each ahead.
inline rest_after(x) { ask[x] = (claimed || holder == NONE -> ttl + rank(x) : NEVER); confirm[x] = NEVER }
inline call_waiters() { for (each : 0 .. N - 1) { if :: listens(each) -> ask[each] = 0 :: else fi } }
inline lock_is_used() { idle[0] = 0; idle[1] = 0; idle[2] = 0 }
#else
#define vanish_from_line(x) leave_line(x)
#define may_ask(x) waits(x)
#define must_ask(x) (waits(x) && msg[x])
#define rest_after(x) skip
#define announce_next(ticks) skip
#define have_hand_over_watched() skip
#define call_waiters() skip
#define expire() skip
#define lock_is_used() skip
#endif

// The scripts. `frees`: a release is passed on. `past`: a recent hand-over was not taken.
inline grant(x, ticks, is_claim) {
  leave_line(x);
  assert(freeze[x] || !any(is_waiting_freeze));
  for (each : 0 .. N - 1) { if :: !frees && has_job(each) && each != x && MISTAKE != not_told -> hears[each] = 1 :: else fi }
  holder = x; ttl = ticks; claimed = is_claim; fence[x] = epoch && MISTAKE != counted_fence
}
inline hand_over(caller) {
  do
  :: holder == NONE && any(has_place) -> find_first();
     if
     :: next == caller -> grant(next, LEASE, 0); yes = 1; announce_next(NEVER)
     :: next != caller && alive(next) -> grant(next, CLAIM, 1); msg[next] = (phase[next] == LINE); have_hand_over_watched()
     :: else -> leave_line(next)
     fi
  :: else -> break
  od
}
#define may_pass (past && next != NONE && (MISTAKE == past_freeze || !(freeze[next] && alive(next))))
inline hand_over_free_lock(caller, caller_place) {
  find_first();
  if
  :: may_pass && caller_place -> grant(caller, LEASE, 0); yes = 1; announce_next(NEVER)
  :: may_pass && !(caller_place) && any(listens) -> call_waiters()
  :: else -> hand_over(caller)
  fi
}
inline acquire(x) {
  yes = 0;
  if
  :: holder == x && !revoked[x] -> ttl = LEASE; claimed = 0; yes = 1; announce_next(NEVER)
  :: holder == x && revoked[x] -> if :: MISTAKE == late_frees -> end_hold(); hand_over(NONE); enqueue(x) :: else fi
  :: holder == NONE -> hand_over_free_lock(x, place[x]);
     if :: holder == NONE && !any(has_place) -> grant(x, LEASE, 0); yes = 1 :: holder == x :: else -> enqueue(x) fi
  :: else -> enqueue(x)
  fi
}
inline renew(x) {
  yes = (holder == x && (!revoked[x] || MISTAKE == renews_revoked));
  if
  :: yes -> ttl = LEASE; if :: claimed -> claimed = 0; announce_next(NEVER) :: else fi
  :: else -> if :: holder == NONE -> hand_over_free_lock(NONE, 0) :: else fi
  fi
}
inline release(x) {
  if
  :: holder == x -> end_hold(); lock_is_used(); frees = 1; hand_over(NONE); frees = 0
  :: else -> leave_line(x); if :: holder == NONE -> hand_over_free_lock(NONE, 0) :: else fi;
     if :: claimed || holder == NONE -> announce_next(ttl) :: else -> announce_next(NEVER) fi
  fi
}

// The clients.
inline start_job(x, ticks) {
  phase[x] = JOB; left[x] = ticks; msg[x] = 0; ask[x] = 0; confirm[x] = 0; lock_is_used();
  for (each : 0 .. N - 1) { assert(each == x || !has_job(each) || fence[each] != fence[x]) }
  assert(holder == x || fence[x] != epoch)
}
inline end_job(x) {
  phase[x] = DONE; left[x] = 0; msg[x] = 0; io[x] = 0; age[x] = 0; hears[x] = 0; lost[x] = 0; slept[x] = 0; over[x] = 0
}
inline end_client(x) {
  end_job(x); phase[x] = OFF; ask[x] = 0; confirm[x] = 0; stopped[x] = 0; idle[x] = 0;
  vanish_from_line(x);
  clean(x)
}
#ifdef NET
#define due(x) (io[x] && age[x] == ANSWER)
// Less what is allowed for the drift, and more because the clock is slow.
#define kept (LEASE - (MISTAKE != no_drift) * DRIFT + DRIFT - (MISTAKE != from_answer) * age[c])
#define of_claim (CLAIM - DRIFT + DRIFT - (MISTAKE != old_message) * (msg[c] - 1))
inline execute(x, request) { if :: request == LINE -> acquire(x) :: request == JOB -> renew(x) :: else -> yes = 0; release(x) fi }
inline forget(x) { io[x] = 0; age[x] = 0 }
inline answer(x) {
  if :: phase[x] == DONE -> end_client(x) :: phase[x] != DONE && yes -> io[x] = YES :: else -> forget(x) fi  // "no" changes nothing
}
active [N] proctype client() {
  byte c = _pid;
  do
  :: d_step { is_over(c) && (c != 1 || !is_over(0)) -> phase[c] = LINE }  // not client 1 before client 0: both are alike
  :: d_step { is_over(c) && c == 2 -> phase[c] = LINE; freeze[c] = 1 }
  :: d_step { phase[c] != OFF && !io[c] -> io[c] = SENT }
  :: d_step { io[c] == SENT -> past = 0; execute(c, phase[c]); answer(c) }
  :: d_step { io[c] == SENT && phase[c] == LINE && holder == NONE -> past = 1; acquire(c); answer(c) }
  :: d_step { io[c] == SENT -> forget(c) }                                  // the request is lost
  :: d_step { io[c] == SENT && !late -> late = phase[c]; sender = c; forget(c) }  // it comes later, and the answer is lost
  :: d_step { late && sender == c -> past = 0; execute(c, late); late = 0; sender = 0; clean(c) }
  :: d_step { late && sender == c -> late = 0; sender = 0; clean(c) }
  :: d_step { io[c] == YES && phase[c] == LINE && freeze[c] -> end_client(c) }
  :: d_step { io[c] == YES && phase[c] == LINE && !freeze[c] -> if :: kept > LEASE / 2 -> start_job(c, kept) :: else fi; forget(c) }
  :: d_step { io[c] == YES && phase[c] == JOB -> left[c] = kept; forget(c) }
  :: d_step { msg[c] && !io[c] && phase[c] == LINE && !freeze[c] && of_claim > CLAIM / 2 -> start_job(c, of_claim) }
  :: d_step { msg[c] -> msg[c] = 0 }
  :: d_step { has_job(c) && io[c] != SENT -> end_job(c) }
  :: d_step { phase[c] != OFF && io[c] != SENT -> end_client(c) }  // killed
  od
}
#else
#define due(x) (must_ask(x) || renews(x) || (phase[x] == DONE && !stopped[x]))
#define renews(x) (has_job(x) && !stopped[x] && !lost[x] && (left[x] <= LEASE - PERIOD || (claimed && holder == x) || hears[x]))
#define of_claim (CLAIM - (msg[c] - 1))
#define is_silent (silent > 0 && MISTAKE != never_past)
inline ask_server(x) {
  past = is_silent; msg[x] = 0; acquire(x);
  if :: yes -> start_job(x, LEASE) :: else -> rest_after(x) fi
}
active [N] proctype client() {
  byte c = _pid;
  do
  :: d_step { is_over(c) && (c != 1 || !is_over(0)) -> phase[c] = LINE; fresh[c] = 1; ask_server(c) }
  :: d_step { may_ask(c) && (!msg[c] || of_claim <= CLAIM / 2) -> ask_server(c); skip }
  :: d_step { may_ask(c) && msg[c] && of_claim > CLAIM / 2 -> start_job(c, of_claim) }
  :: d_step { renews(c) -> past = is_silent; renew(c);
       if :: yes -> left[c] = LEASE :: else -> lost[c] = 1; left[c] = (left[c] > KILL -> KILL : left[c]) fi; skip }
  :: d_step { has_job(c) -> end_job(c) }
  :: d_step { (phase[c] == DONE && !stopped[c]) || waits(c) -> past = is_silent; release(c); end_client(c) }
  :: d_step { STOPS && phase[c] != OFF && !stopped[c] -> stopped[c] = 1; slept[c] = has_job(c); idle[c] = 0 }
  :: d_step { stopped[c] -> stopped[c] = 0 }
  :: d_step { phase[c] != OFF -> end_client(c) }  // killed
  od
}
#endif
// The kernel kills the job where nothing else does.
#define must_act(x) (due(x) || (has_job(x) && left[x] == 1 && MISTAKE != no_last_resort))
#define is_newer_job(x) (has_job(x) && fence[x] == epoch)
active proctype world() {
  do
  :: d_step { !any(must_act) ->  // a tick
       for (each : 0 .. N - 1) {
         fresh[each] = 0; age[each] = age[each] + (io[each] > 0); left[each] = left[each] - (left[each] > 0);
         ask[each] = (msg[each] == CLAIM || !ask[each] -> 0 : ask[each] - (ask[each] != NEVER));
         msg[each] = (msg[each] && msg[each] < CLAIM -> msg[each] + 1 : 0);  // an older one only makes the waiter ask
         confirm[each] = (confirm[each] == NEVER || stopped[each] -> confirm[each] : confirm[each] - (confirm[each] > 0))
       }
       silent = silent - (silent > 0); ttl = ttl - (ttl > 0); bound = bound - (bound > 0);
       if :: holder != NONE && !ttl -> expire(); end_hold() :: else fi;
       if :: holder != NONE && revoked[holder] -> assert(ttl <= bound) :: else -> bound = 0 fi;
#ifdef LIVE
       for (each : 0 .. N - 1) {
         if
         :: any(has_job) || (holder != NONE && !claimed) || !waits(each) -> idle[each] = 0
         :: else -> idle[each]++; assert(idle[each] <= IN_TIME)
         fi
       }
#elif defined(LOSS)
       for (each : 0 .. N - 1) {
         if :: has_job(each) && fence[each] != epoch && any(is_newer_job) -> over[each]++ :: else fi;
         assert(over[each] <= (slept[each] -> LEASE : TOLD))
       }
#endif
       skip }
#ifdef NET
  :: d_step { holder != NONE && !freeze[holder] && !revoked[holder] ->
       if :: MISTAKE == revoke_frees -> end_hold(); hand_over(NONE) :: else -> revoked[holder] = 1; bound = ttl fi; skip }
#elif defined(LOSS)
#define is_older(x) ((has_job(x) || msg[x]) && fence[x] != epoch)
  :: d_step { !any(is_older) -> epoch = 1 - epoch; if :: holder != NONE -> end_hold() :: else fi; skip }
  :: d_step { !any(is_older) -> place[0] = 0; place[1] = 0; place[2] = 0 }
#endif
  od
}
