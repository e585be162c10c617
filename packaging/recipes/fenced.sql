-- The resource stores the greatest number that it has seen and refuses a smaller one, so that a holder that was paused for
-- too long changes nothing. If no row is changed, another client has held the lock since.
-- The number stops late writers only: the next holder has a greater one, and may run a job again that was killed after its
-- commit. Never twice needs a unique key in the same transaction. The tables are account(id, balance, fence BIGINT) and
-- booking(id TEXT PRIMARY KEY).
BEGIN;
UPDATE account SET balance = balance - :amount, fence = :fence WHERE id = :id AND fence <= :fence RETURNING 1;
INSERT INTO booking SELECT ':booking' WHERE EXISTS (SELECT 1 FROM account WHERE id = :id AND fence = :fence);
COMMIT;
