-- The most that each rank (a file is one process's) had on each GPU, and when.
WITH sums AS (
  SELECT file, device, seq, time,
         SUM(change) OVER (PARTITION BY file, device ORDER BY seq ROWS UNBOUNDED PRECEDING) AS live
  FROM changes
  WHERE device IS NOT NULL
),
ranked AS (
  SELECT file, device, seq, time, live, ROW_NUMBER() OVER (PARTITION BY file, device ORDER BY live DESC, seq) AS place
  FROM sums
)
SELECT file, device, live AS peak_bytes, time AS peak_time_ns, seq AS peak_seq
FROM ranked
WHERE place = 1
ORDER BY peak_bytes DESC, file, device;
