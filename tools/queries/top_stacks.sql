-- The stacks that allocated most, over all ranks: told by the functions and libraries of their frames, so that the same code is
-- one whatever its number is in each rank's file.
WITH described AS (
  SELECT f.file, f.stack_id, f.depth, COALESCE(NULLIF(f.function, ''), f.module || f.offset) || '@' || f.module AS frame
  FROM frames f
),
stacks AS (
  SELECT file, stack_id, STRING_AGG(frame, ';' ORDER BY depth, frame) AS stack  -- inlined functions have one depth
  FROM described
  GROUP BY file, stack_id
)
SELECT COALESCE(s.stack, '(no stack)') AS stack, COUNT(*) AS allocations, SUM(e.bytes) AS bytes,
       COUNT(DISTINCT e.file) AS ranks
FROM events e
LEFT JOIN stacks s ON s.file = e.file AND s.stack_id = e.stack_id
WHERE e.action = 'allocate' AND e.result = 'ok' AND e.device IS NOT NULL
GROUP BY COALESCE(s.stack, '(no stack)')
ORDER BY bytes DESC, stack
LIMIT 20;
