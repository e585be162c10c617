-- The resource stores the greatest number that it has seen and refuses a smaller one, so that a holder that was paused for
-- too long changes nothing. If no row is changed, another client has held the lock since.
UPDATE account SET balance = balance - :amount, fence = :fence WHERE id = :id AND fence <= :fence;
