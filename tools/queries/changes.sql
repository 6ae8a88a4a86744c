-- What each row adds to, or takes from, the memory of a GPU; a block's end has its stack, too.
CREATE OR REPLACE VIEW changes AS
WITH made AS (
  SELECT file, ptr, generation, bytes, device, kind, stack_id
  FROM events
  WHERE action IN ('allocate', 'live') AND result = 'ok'
)
SELECT e.file, e.seq, e.time, e.device, e.thread, e.kind, e.stack_id, e.bytes AS change
FROM events e
WHERE e.action IN ('allocate', 'live') AND e.result = 'ok'
UNION ALL
SELECT e.file, e.seq, e.time, m.device, e.thread, m.kind, m.stack_id, -m.bytes AS change
FROM events e
JOIN made m ON m.file = e.file AND m.ptr = e.ptr AND m.generation = e.generation
WHERE e.action IN ('deallocate', 'context_destroyed', 'ended_unseen') AND e.result = 'ok' AND e.kind <> 'foreign';
