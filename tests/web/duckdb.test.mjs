// Every number of a report equals the same query done by a database on the same file.
import assert from "node:assert/strict";
import test from "node:test";
import { database, goldens, query, report } from "./support.mjs";

const gpuOf = (json, ordinal) => json.gpus.find((gpu) => gpu.ordinal === ordinal && gpu.memory === "gpu");
const byStack = (list) => new Map(list.map((each) => [each.stack.stack_id, [each.bytes, each.blocks]]));

for (const folder of goldens) {
  const name = folder.split("/").pop();

  test(`${name}: peaks, and who held them`, async () => {
    const json = report(folder);
    const ask = await database(folder);
    const peaks = await ask(query("peak_per_rank"));
    assert.ok(peaks.length > 0);
    for (const row of peaks) {
      const gpu = gpuOf(json, row.device);
      assert.equal(gpu.peak_bytes, row.peak_bytes);
      assert.equal(gpu.peak_time_ns, row.peak_time_ns);
      const held = (await ask(query("held_at_peak"))).filter((each) => each.device === row.device);
      assert.deepEqual(byStack(gpu.at_peak), new Map(held.map((each) => [each.stack_id, [each.bytes, each.blocks]])));
    }
  });

  test(`${name}: what is live at the end, and at other times`, async () => {
    const ask = await database(folder);
    const whole = report(folder);
    const middle = Math.floor((whole.first_time_ns + whole.last_time_ns) / 2);
    for (const [json, until] of [[whole, whole.last_time_ns], [report("--at", String(middle), folder), middle]]) {
      const rows = await ask(`SELECT device, stack_id, SUM(change) AS bytes, SUM(CASE WHEN change >= 0 THEN 1 ELSE -1 END) AS blocks FROM changes
        WHERE device IS NOT NULL AND time <= ${until} GROUP BY device, stack_id HAVING SUM(CASE WHEN change >= 0 THEN 1 ELSE -1 END) > 0`);
      for (const gpu of json.gpus.filter((each) => each.memory === "gpu")) {
        const own = rows.filter((each) => each.device === gpu.ordinal);
        assert.equal(gpu.live_bytes, own.reduce((sum, each) => sum + each.bytes, 0));
        assert.equal(gpu.live_blocks, own.reduce((sum, each) => sum + each.blocks, 0));
        assert.deepEqual(byStack(gpu.never_freed), new Map(own.map((each) => [each.stack_id, [each.bytes, each.blocks]])));
      }
    }
  });

  test(`${name}: counts, time, refusals`, async () => {
    const json = report(folder);
    const ask = await database(folder);
    const [calls] = await ask(`SELECT COUNT(*) AS calls, SUM(elapsed_ns) AS ns, MIN(time) AS first, MAX(time) AS last FROM events
      WHERE elapsed_ns IS NOT NULL AND action IN ('allocate', 'live', 'deallocate', 'context_destroyed', 'ended_unseen', 'reap_pending')`);
    assert.deepEqual([json.calls, json.call_ns], [calls.calls, calls.ns]);
    const [rows] = await ask("SELECT COUNT(*) AS n, MIN(time) AS first, MAX(time) AS last FROM events WHERE action <> 'lost'");
    assert.deepEqual([json.rows, json.first_time_ns, json.last_time_ns], [rows.n, rows.first, rows.last]);
    for (const gpu of json.gpus.filter((each) => each.memory === "gpu")) {
      const [one] = await ask(`SELECT COUNT(*) FILTER (WHERE result = 'ok') AS made, COUNT(*) FILTER (WHERE result <> 'ok') AS failed,
        COUNT(*) FILTER (WHERE result = 'CUDA_ERROR_OUT_OF_MEMORY') AS refused FROM events WHERE action = 'allocate' AND device = ${gpu.ordinal}`);
      assert.deepEqual([gpu.allocations, gpu.failed, gpu.refusals], [one.made, one.failed, one.refused]);
      const refused = await ask(`SELECT time, bytes, live_bytes FROM events WHERE result = 'CUDA_ERROR_OUT_OF_MEMORY' AND device = ${gpu.ordinal} ORDER BY seq LIMIT 4`);
      gpu.refused.slice(0, 4).forEach((each, i) => assert.deepEqual([each.time_ns, each.requested_bytes], [refused[i].time, refused[i].bytes]));
    }
  });

  test(`${name}: by thread, kind and stream`, async () => {
    const json = report(folder);
    const ask = await database(folder);
    for (const gpu of json.gpus.filter((each) => each.memory === "gpu")) {
      const threads = await ask(`SELECT thread, COUNT(*) AS n FROM events WHERE action = 'allocate' AND result = 'ok' AND device = ${gpu.ordinal} GROUP BY thread`);
      assert.deepEqual(new Map(gpu.threads.map((each) => [each.thread, each.allocations])), new Map(threads.map((each) => [each.thread, each.n])));
      const kinds = await ask(`SELECT kind, COUNT(*) AS n, SUM(bytes) AS bytes FROM events WHERE action = 'allocate' AND result = 'ok' AND device = ${gpu.ordinal} GROUP BY kind`);
      assert.deepEqual(new Map(Object.entries(gpu.kinds).map(([kind, each]) => [kind, [each.allocations, each.bytes]])), new Map(kinds.map((each) => [each.kind, [each.n, each.bytes]])));
      const streams = await ask(`SELECT COUNT(DISTINCT COALESCE(stream, 'none')) AS n FROM events WHERE action = 'allocate' AND result = 'ok' AND device = ${gpu.ordinal}`);
      assert.equal(Object.keys(gpu.streams).length, streams[0].n);
    }
  });

  test(`${name}: sizes and lifetimes`, async () => {
    const json = report(folder);
    const ask = await database(folder);
    const sizes = await ask(`SELECT CASE WHEN bytes = 0 THEN 0 ELSE CAST(FLOOR(LOG2(bytes)) AS BIGINT) + 1 END AS class, COUNT(*) AS n, SUM(bytes) AS bytes
      FROM events WHERE action = 'allocate' AND result = 'ok' GROUP BY class ORDER BY class`);
    assert.deepEqual(json.sizes.map((each) => [each.below_log2, each.allocations, each.bytes]), sizes.map((each) => [each.class, each.n, each.bytes]));
    const lives = await ask(`SELECT CASE WHEN f.time <= a.time THEN 0 ELSE CAST(FLOOR(LOG10(f.time - a.time)) AS BIGINT) + 1 END AS class, COUNT(*) AS n
      FROM events f JOIN events a ON a.ptr = f.ptr AND a.generation = f.generation AND a.file = f.file AND a.action IN ('allocate', 'live') AND a.result = 'ok'
      WHERE f.action IN ('deallocate', 'context_destroyed') AND f.result = 'ok' AND f.kind <> 'foreign' GROUP BY class ORDER BY class`);
    assert.deepEqual(json.lifetimes.map((each) => [each.below_log10_ns, each.blocks]), lives.map((each) => [each.class, each.n]));
  });
}
