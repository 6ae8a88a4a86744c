-- Ranks whose peak is more than 5 % away from the median of all.
WITH sums AS (
  SELECT file, device, seq,
         SUM(change) OVER (PARTITION BY file, device ORDER BY seq ROWS UNBOUNDED PRECEDING) AS live
  FROM changes
  WHERE device IS NOT NULL
),
peaks AS (
  SELECT file, MAX(live) AS peak_bytes FROM sums GROUP BY file
),
middle AS (
  SELECT PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY peak_bytes) AS median_bytes FROM peaks
)
SELECT p.file, p.peak_bytes, m.median_bytes
FROM peaks p CROSS JOIN middle m
WHERE ABS(p.peak_bytes - m.median_bytes) > 0.05 * m.median_bytes
ORDER BY ABS(p.peak_bytes - m.median_bytes) DESC, p.file;
