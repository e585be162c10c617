-- The resource has the last word: it remembers the greatest number it has seen and refuses a smaller one, so that a holder
-- that was paused for too long changes nothing. No row is changed: somebody else has held the lock since.
UPDATE account SET balance = balance - :amount, fence = :fence WHERE id = :id AND fence <= :fence;
