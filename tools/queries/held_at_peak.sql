-- What each stack held when its rank's GPU was at its highest.
WITH sums AS (
  SELECT file, device, seq,
         SUM(change) OVER (PARTITION BY file, device ORDER BY seq ROWS UNBOUNDED PRECEDING) AS live
  FROM changes
  WHERE device IS NOT NULL
),
ranked AS (
  SELECT file, device, seq, ROW_NUMBER() OVER (PARTITION BY file, device ORDER BY live DESC, seq) AS place
  FROM sums
)
SELECT c.file, c.device, c.stack_id, SUM(c.change) AS bytes, SUM(CASE WHEN c.change >= 0 THEN 1 ELSE -1 END) AS blocks
FROM changes c
JOIN ranked r ON r.file = c.file AND r.device = c.device AND r.place = 1 AND c.seq <= r.seq
GROUP BY c.file, c.device, c.stack_id
HAVING SUM(c.change) <> 0
ORDER BY bytes DESC, c.file, c.stack_id;
